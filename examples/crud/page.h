// The page of the example. Text from the server is shown as text: textContent, never innerHTML.
#pragma once

#include <string_view>

namespace crud {

inline constexpr std::string_view kPage = R"html(<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Tasks</title>
<style>
  body { font: 16px system-ui, sans-serif; max-width: 40rem; margin: 2rem auto; padding: 0 1rem; }
  .done { text-decoration: line-through; color: #666; }
  [hidden] { display: none; }
</style>
<h1>Tasks</h1>
<form id="login"><input name="user" placeholder="Your name" required maxlength="50"> <button>Sign in</button></form>
<form id="add" hidden><input name="title" placeholder="What is to be done?" required maxlength="200"> <button>Add</button>
  <button type="button" id="leave">Sign out</button></form>
<p id="error"></p>
<ul id="list"></ul>
<script>
  const $ = id => document.getElementById(id);

  async function ask(method, path, body) {
    const options = { method };
    if (body) Object.assign(options, { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } });
    const answer = await fetch("/api" + path, options);
    const value = answer.status === 204 ? null : await answer.json();
    $("error").textContent = answer.ok || answer.status === 401 ? "" : value.error;
    return answer.ok ? value : undefined;
  }

  async function show() {
    const tasks = await ask("GET", "/tasks");
    $("login").hidden = tasks !== undefined;
    $("add").hidden = tasks === undefined;
    $("list").replaceChildren(...(tasks ?? []).map(task => {
      const item = document.createElement("li"), box = document.createElement("input"),
            text = document.createElement("span"), gone = document.createElement("button");
      box.type = "checkbox";
      box.checked = task.done;
      box.onchange = async () => { await ask("PUT", "/tasks/" + task.id, { ...task, done: box.checked }); show(); };
      text.textContent = " " + task.title + " ";
      text.className = task.done ? "done" : "";
      gone.textContent = "Remove";
      gone.onclick = async () => { await ask("DELETE", "/tasks/" + task.id); show(); };
      item.append(box, text, gone);
      return item;
    }));
  }

  function on_submit(form, method, path) {
    form.onsubmit = async event => {
      event.preventDefault();
      await ask(method, path, Object.fromEntries(new FormData(form)));
      form.reset();
      show();
    };
  }
  on_submit($("login"), "POST", "/session");
  on_submit($("add"), "POST", "/tasks");
  $("leave").onclick = async () => { await ask("DELETE", "/session"); show(); };
  show();
</script>
)html";

}  // namespace crud

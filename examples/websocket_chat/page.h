// The page of the example. Text of guests is shown as text: textContent, never innerHTML.
#pragma once

#include <string_view>

namespace websocket_chat {

inline constexpr std::string_view kPage = R"html(<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Chat</title>
<style>
  body { font: 16px system-ui, sans-serif; max-width: 40rem; margin: 2rem auto; padding: 0 1rem; }
  form { display: flex; gap: .5rem; }
  form[hidden] { display: none; }
  input { flex: 1; font: inherit; padding: .3rem; }
  #lines { list-style: none; padding: 0; height: 60vh; overflow-y: auto; border: 1px solid #ccc; }
  #lines li { padding: .2rem .5rem; overflow-wrap: anywhere; }
  #lines .note, #state { color: #666; }
</style>
<h1>Chat</h1>
<form id="enter">
  <input id="name" maxlength="20" placeholder="Your name" required autofocus>
  <button>Enter</button>
</form>
<form id="say" hidden>
  <input id="text" maxlength="1000" placeholder="Say something" required autocomplete="off">
  <button>Send</button>
</form>
<p id="state"></p>
<ol id="lines"></ol>
<script>
  const $ = id => document.getElementById(id);
  let socket = null;

  function show(line) {
    const item = document.createElement("li");
    item.textContent = line;
    if (line.startsWith("* ")) item.className = "note";
    $("lines").append(item);
    if ($("lines").children.length > 500) $("lines").firstChild.remove();
    item.scrollIntoView();
  }

  function enter(name) {
    const url = new URL("/chat", location);
    url.protocol = url.protocol.replace("http", "ws");
    url.searchParams.set("name", name);
    socket = new WebSocket(url);
    socket.onopen = () => {
      $("enter").hidden = true;
      $("say").hidden = false;
      $("state").textContent = "";
      $("text").focus();
    };
    socket.onmessage = event => show(event.data);
    socket.onclose = event => {
      $("enter").hidden = false;
      $("say").hidden = true;
      $("state").textContent = `closed: ${event.code} ${event.reason}`;
    };
  }

  $("enter").onsubmit = event => { event.preventDefault(); enter($("name").value); };
  $("say").onsubmit = event => { event.preventDefault(); socket.send($("text").value); $("text").value = ""; };
</script>
)html";

}  // namespace websocket_chat

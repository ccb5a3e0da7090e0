// The page of the example. Text from the server is shown as text: textContent, never innerHTML.
#pragma once

#include <string_view>

namespace upload {

inline constexpr std::string_view kPage = R"html(<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Upload</title>
<style>
  body { font: 16px system-ui, sans-serif; max-width: 40rem; margin: 2rem auto; padding: 0 1rem; }
  progress { width: 100%; }
  li span { color: #666; }
</style>
<h1>Upload</h1>
<form id="form">
  <input id="files" name="file" type="file" multiple required>
  <button>Send</button>
</form>
<p><progress id="progress" value="0" max="1"></progress> <output id="state"></output></p>
<ul id="list"></ul>
<script>
  const $ = id => document.getElementById(id);

  async function show() {
    const files = await (await fetch("/files")).json();
    files.sort((a, b) => a.name.localeCompare(b.name));
    $("list").replaceChildren(...files.map(file => {
      const item = document.createElement("li"), link = document.createElement("a"), size = document.createElement("span");
      link.href = "/files/" + file.id;
      link.download = link.textContent = file.name;
      size.textContent = ` ${file.bytes.toLocaleString("en")} bytes`;
      item.append(link, size);
      return item;
    }));
  }

  // fetch() does not tell how much has been sent; XMLHttpRequest does.
  function send(data) {
    const request = new XMLHttpRequest();
    request.upload.onprogress = event => { $("progress").value = event.loaded / event.total; };
    request.onload = () => { $("state").textContent = request.status === 201 ? "stored" : request.responseText; show(); };
    request.onerror = () => { $("state").textContent = "the connection was lost"; };
    request.open("POST", "/files");
    request.send(data);
  }

  $("form").onsubmit = event => { event.preventDefault(); $("state").textContent = "sending"; send(new FormData($("form"))); };
  show();
</script>
)html";

}  // namespace upload

// The page of the example.
#pragma once

#include <string_view>

namespace sse_clock {

inline constexpr std::string_view kPage = R"html(<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Clock</title>
<style>
  body { font: 16px system-ui, sans-serif; max-width: 40rem; margin: 2rem auto; padding: 0 1rem; text-align: center; }
  #time { font-size: 4rem; font-variant-numeric: tabular-nums; margin: 1rem 0; }
  #state { color: #666; }
</style>
<h1>The time of the server</h1>
<p id="time">--:--:--</p>
<p id="state">connecting</p>
<script>
  const $ = id => document.getElementById(id);
  const source = new EventSource("/events");  // connects again by itself
  source.onopen = () => { $("state").textContent = "connected"; };
  source.onerror = () => { $("state").textContent = "connecting again"; };
  source.addEventListener("tick", event => { $("time").textContent = event.data; });
  source.addEventListener("missed", event => {
    const note = document.createElement("p");
    note.textContent = `${event.data} ticks were missed`;
    $("state").after(note);
  });
  source.addEventListener("bye", () => { $("state").textContent = "the server goes away"; });
</script>
)html";

}  // namespace sse_clock

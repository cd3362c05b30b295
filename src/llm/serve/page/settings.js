/* SPDX-License-Identifier: Apache-2.0 */
/* What the user may turn: kept in this browser, the API key only in this tab. */
"use strict";

const DEFAULTS = { system: "", temperature: 0.6, top_p: 0.95, max_tokens: "", seed: "",
  thinking: "", full: "drop" };
const settings = { ...DEFAULTS, key: "" };

/* A private window may refuse storage; the page works without. */
function remember(store, key, value) {
  try { store.setItem(key, value); } catch { /* not kept */ }
}

function recall(store, key) {
  try { return store.getItem(key); } catch { return null; }
}

function showSettings() {
  for (const name of [...Object.keys(DEFAULTS), "key"]) byId(name).value = settings[name];
  for (const out of document.querySelectorAll("output[for]"))
    out.textContent = Number(settings[out.htmlFor]).toFixed(2);
}

function changeSetting(name, value) {
  settings[name] = name === "temperature" || name === "top_p" ? Number(value) : value;
  const { key, ...kept } = settings;
  remember(localStorage, "fathom-settings", JSON.stringify(kept));
  remember(sessionStorage, "fathom-key", key);
  const out = document.querySelector(`output[for="${name}"]`);
  if (out) out.textContent = Number(value).toFixed(2);
}

function loadSettings() {
  try {
    const kept = JSON.parse(recall(localStorage, "fathom-settings") || "{}");
    for (const name of Object.keys(DEFAULTS))
      if (typeof kept[name] === typeof DEFAULTS[name]) settings[name] = kept[name];
  } catch { /* what is stored is not ours: defaults */ }
  settings.key = recall(sessionStorage, "fathom-key") || "";
  showSettings();
  for (const name of [...Object.keys(DEFAULTS), "key"])
    byId(name).addEventListener("input", (e) => changeSetting(name, e.target.value));
  byId("reset").onclick = () => {
    for (const [name, value] of Object.entries(DEFAULTS)) changeSetting(name, value);
    showSettings();
  };
}

/* The settings as fields of a chat request. */
function samplingFields() {
  const fields = { temperature: settings.temperature, top_p: settings.top_p };
  const limit = Math.floor(settings.max_tokens);
  if (limit >= 1) fields.max_completion_tokens = limit;
  if (settings.seed !== "" && Number(settings.seed) >= 0) fields.seed = Math.floor(settings.seed);
  if (settings.thinking) fields.chat_template_kwargs = { thinking: settings.thinking === "on" };
  return fields;
}

/* theme: as the system, light, dark */
const THEMES = {
  auto: ["As the system", "M10 3a7 7 0 1 0 0 14zM10 3a7 7 0 0 1 0 14"],
  light: ["Light", "M10 6.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7z" +
    "M10 2v1.5M10 16.5V18M2 10h1.5M16.5 10H18" +
    "M4.3 4.3l1.1 1.1M14.6 14.6l1.1 1.1M4.3 15.7l1.1-1.1M14.6 5.4l1.1-1.1"],
  dark: ["Dark", "M16 12.2A6.8 6.8 0 0 1 7.8 4a6.8 6.8 0 1 0 8.2 8.2z"],
};
const systemDark = matchMedia("(prefers-color-scheme: dark)");
let theme = "auto";

function showTheme() {
  const [name, path] = THEMES[theme];
  const system = systemDark.matches ? "dark" : "light";
  document.documentElement.dataset.theme = theme === "auto" ? system : theme;
  const button = byId("theme");
  button.innerHTML = `<svg viewBox="0 0 20 20" aria-hidden="true"><path d="${path}"/></svg>`;
  button.setAttribute("aria-label", `Theme: ${name}`);
  button.title = `Theme: ${name}`;
}

function loadTheme() {
  const kept = recall(localStorage, "fathom-theme");
  if (kept in THEMES) theme = kept;
  showTheme();
  systemDark.addEventListener("change", showTheme);
  byId("theme").onclick = () => {
    const names = Object.keys(THEMES);
    theme = names[(names.indexOf(theme) + 1) % names.length];
    remember(localStorage, "fathom-theme", theme);
    showTheme();
  };
}

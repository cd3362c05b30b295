/* SPDX-License-Identifier: Apache-2.0 */
/* What the user may turn: kept in this browser, the API key only in this tab. */
"use strict";

/* "": as the model or the server has it. */
const DEFAULTS = { system: "", temperature: "", top_p: "", max_tokens: "", seed: "",
  thinking: "", full: "drop", tools: "", schema: "" };
const settings = { ...DEFAULTS, key: "" };
const modelDefaults = { temperature: 1, top_p: 1 };

/* A private window may refuse storage; the page works without. */
function remember(store, key, value) {
  try { store.setItem(key, value); return true; } catch { return false; }
}

function recall(store, key) {
  try { return store.getItem(key); } catch { return null; }
}

/* A slider that was not moved stands where the model's own value is. */
function showSlider(name) {
  const own = settings[name] === "", value = own ? modelDefaults[name] : settings[name];
  byId(name).value = value;
  const out = document.querySelector(`output[for="${name}"]`);
  out.textContent = Number(value).toFixed(2) + (own ? " (model’s)" : "");
}

function showSettings() {
  for (const name of [...Object.keys(DEFAULTS), "key"])
    if (name in modelDefaults) showSlider(name);
    else byId(name).value = settings[name];
}

function takeModelDefaults(info) {
  const given = info.default_sampling_params || info.preferred_sampling_params || {};
  for (const name of Object.keys(modelDefaults))
    if (Number.isFinite(given[name])) modelDefaults[name] = given[name];
  for (const name of Object.keys(modelDefaults)) showSlider(name);
}

function changeSetting(name, value) {
  settings[name] = value;
  const { key, ...kept } = settings;
  remember(localStorage, "fathom-settings", JSON.stringify(kept));
  remember(sessionStorage, "fathom-key", key);
  if (name in modelDefaults) showSlider(name);
  if (name === "key") document.dispatchEvent(new Event("keychange"));
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
  const fields = {};
  for (const name of Object.keys(modelDefaults))
    if (settings[name] !== "") fields[name] = Number(settings[name]);
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

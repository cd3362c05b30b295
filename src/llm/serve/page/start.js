/* SPDX-License-Identifier: Apache-2.0 */
"use strict";

const TABS = ["chat", "dash"];

function showTab(name, focus) {
  for (const t of TABS) {
    const tab = byId(`tab-${t}`), on = t === name;
    tab.setAttribute("aria-selected", String(on));
    tab.tabIndex = on ? 0 : -1;
    byId(`view-${t}`).hidden = !on;
    if (on && focus) tab.focus();
  }
  byId("panel-toggle").hidden = byId("chats-toggle").hidden = name !== "chat";
  window.history.replaceState(null, "", name === "chat" ? location.pathname : "#dashboard");
  drawDashboard();
}

function loadTabs() {
  for (const t of TABS) {
    byId(`tab-${t}`).onclick = () => showTab(t);
    byId(`tab-${t}`).onkeydown = (e) => {
      if (e.key === "ArrowRight" || e.key === "ArrowLeft") showTab(TABS[1 - TABS.indexOf(t)], true);
    };
  }
  if (location.hash === "#dashboard") showTab("dash");
}

function showPanel(open) {
  byId("panel").hidden = !open;
  byId("panel-toggle").setAttribute("aria-expanded", String(open));
}

function loadPanel() {
  byId("panel-toggle").onclick = () => {
    showPanel(byId("panel").hidden);
    if (!byId("panel").hidden) byId("system").focus();
  };
  byId("panel-close").onclick = () => { showPanel(false); promptBox.focus(); };
  const phone = matchMedia("(max-width: 700px)"); /* there the panel covers the chat */
  phone.addEventListener("change", () => { if (phone.matches) showPanel(false); });
  showPanel(innerWidth > 1100);
}

/* Ctrl+K searches the chats.  Esc closes what is on top, then stops the answer. */
function loadKeys() {
  addEventListener("keydown", (e) => {
    if (e.key === "k" && (e.ctrlKey || e.metaKey) && !byId("view-chat").hidden) {
      e.preventDefault();
      showChatPanel(true);
      byId("chat-search").focus();
    }
    if (e.key !== "Escape") return;
    if (byId("chats").contains(document.activeElement)) { leaveChatPanel(); promptBox.focus(); return; }
    if (byId("panel").contains(document.activeElement)) {
      if (innerWidth <= 700) showPanel(false);
      promptBox.focus();
    } else stopAnswer();
  });
}

async function loadModel() {
  try {
    const models = await getJson("v1/models");
    modelName = models.data[0].id;
    contextTokens = models.data[0].max_model_len || 0;
    showGauge(tree.path(), promptBox.value);
    byId("model").textContent = modelName.split("/").pop();
    document.title = `${byId("model").textContent} · fathom`;
    keyNeeded = false;
  } catch (e) { /* the chat works without the name */
    keyNeeded = e.status === 401 || e.status === 403;
  }
}

/* A key that was just typed counts at once, not after a reload. */
function loadReconnect() {
  let timer = 0;
  document.addEventListener("keychange", () => {
    clearTimeout(timer);
    timer = setTimeout(async () => { await loadModel(); showServer(); poll(); }, 250);
  });
}

loadTheme();
markMathFont();
loadSettings();
loadTools();
loadTabs();
loadPanel();
loadKeys();
loadChat();
loadChats();
loadReconnect();
loadModel();
loadDashboard();

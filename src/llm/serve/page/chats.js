/* SPDX-License-Identifier: Apache-2.0 */
/* The list of chats beside the conversation. */
"use strict";

const ICONS = {
  rename: "M4 13.5V16h2.5L15 7.500 12.500 5zM11 6.500 13.500 9",
  remove: "M5 6.500h10M8.500 6.500V5h3v1.500M6.500 6.500l.6 9h5.800l.6-9",
};

function iconButton(name, path, onclick) {
  const picture = svg("svg", { viewBox: "0 0 20 20", "aria-hidden": "true" });
  picture.append(svg("path", { d: path }));
  return element("button", { class: "icon small", type: "button", "aria-label": name, title: name, onclick },
    picture);
}

/* The first press asks, the second deletes. */
function deleteButton(chat) {
  const button = iconButton(`Delete ${chat.title}`, ICONS.remove, () => {
    if (button.dataset.sure) { forgetChat(chat.id); return; }
    button.dataset.sure = "1";
    button.replaceChildren("Delete?");
    button.setAttribute("aria-label", `Really delete ${chat.title}?`);
    setTimeout(showChats, 3000);
  });
  return button;
}

function renameInPlace(item, chat) {
  const box = element("input", { type: "text", "aria-label": "Title of the chat", maxlength: "200" });
  const done = (keep) => {
    if (keep && box.value.trim()) renameChat(chat.id, box.value.trim());
    showChats();
  };
  box.value = chat.title;
  box.onblur = () => done(true);
  box.onkeydown = (e) => {
    if (e.key === "Enter") box.blur();
    if (e.key === "Escape") { e.stopPropagation(); box.onblur = null; done(false); }
  };
  item.replaceChildren(box);
  box.select();
}

function chatItem(chat) {
  const open = element("button", { class: "open", type: "button", onclick: () => openChat(chat.id) },
    chat.title || "New chat");
  if (chat.id === chatId) open.setAttribute("aria-current", "true");
  const item = element("li", {}, open);
  item.append(iconButton(`Rename ${chat.title}`, ICONS.rename, () => renameInPlace(item, chat)),
    deleteButton(chat));
  return item;
}

function showChats() {
  if (byId("chats").hidden || byId("chat-list").querySelector("input")?.matches(":focus")) return;
  const query = byId("chat-search").value, found = keptChats().filter((c) => chatMatches(c, query));
  byId("chat-list").replaceChildren(...found.map(chatItem));
  byId("chats-none").hidden = found.length > 0;
  byId("chats-none").textContent = query.trim() ? "No chat has these words." : "No chats yet.";
}

function forgetChat(id) {
  dropChat(id);
  if (id === chatId) newChat();
  showChats();
}

function showChatPanel(open) {
  byId("chats").hidden = !open;
  byId("chats-toggle").setAttribute("aria-expanded", String(open));
  showChats();
}

/* On a phone the list covers the chat: it goes once a chat is chosen. */
function leaveChatPanel() {
  if (innerWidth <= 700) showChatPanel(false);
}

function saveFile(name, kind, text) {
  const address = URL.createObjectURL(new Blob([text], { type: kind }));
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

async function importFile(file) {
  try {
    const n = importChats(await file.text());
    say(`${n} chat${n === 1 ? "" : "s"} imported`);
    byId("chats-error").hidden = true;
  } catch (e) {
    byId("chats-error").hidden = false;
    byId("chats-error").textContent = e.message;
  }
  showChats();
}

/* Up and down walk through the titles. */
function walkChats(e) {
  const titles = [...byId("chat-list").querySelectorAll(".open")];
  const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
  if (!step || !titles.length) return;
  const i = titles.indexOf(document.activeElement) + step;
  e.preventDefault();
  (i < 0 ? byId("chat-search") : titles[Math.min(i, titles.length - 1)]).focus();
}

function loadChats() {
  byId("chats-toggle").onclick = () => {
    showChatPanel(byId("chats").hidden);
    remember(localStorage, "fathom-list", byId("chats").hidden ? "" : "open");
    if (!byId("chats").hidden) byId("chat-search").focus();
  };
  byId("chats-close").onclick = () => { showChatPanel(false); byId("chats-toggle").focus(); };
  byId("chats-new").onclick = () => { newChat(); leaveChatPanel(); };
  byId("chat-search").oninput = showChats;
  byId("chats").addEventListener("keydown", walkChats);
  byId("chats-export").onclick = () => saveFile("chats.json", "application/json", exportChats());
  byId("chat-export").onclick = () => saveFile("chat.md", "text/markdown", chatAsMarkdown(tree.path()));
  byId("chats-import").onclick = () => byId("chats-file").click();
  byId("chats-file").onchange = (e) => { if (e.target.files[0]) importFile(e.target.files[0]); e.target.value = ""; };
  addEventListener("storage", showChats); /* another window changed something */
  const kept = recall(localStorage, "fathom-list");
  showChatPanel(innerWidth > 1100 && (kept === null ? innerWidth > 1400 : kept === "open"));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Elements from data.  Strings become text nodes, never markup. */
"use strict";

const byId = (id) => document.getElementById(id);

function element(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes || {}))
    if (k === "class") e.className = v;
    else if (k.startsWith("on")) e[k] = v;
    else e.setAttribute(k, v);
  e.append(...children);
  return e;
}

function plainButton(text, onclick) {
  return element("button", { class: "plain", type: "button", onclick }, text);
}

async function copyText(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch { /* plain http from another machine has no clipboard API */
    const box = element("textarea", { class: "hidden" });
    box.value = text;
    document.body.append(box);
    box.select();
    document.execCommand("copy");
    box.remove();
  }
  const was = button.textContent;
  if (was === "Copied") return;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = was; }, 1200);
}

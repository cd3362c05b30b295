/* SPDX-License-Identifier: Apache-2.0 */
/* What LaTeX's commands stand for. */
"use strict";

/* "name=sign name=sign ..." -> {name: sign} */
function signs(text) {
  return Object.assign(Object.create(null),
    Object.fromEntries(text.trim().split(/\s+/).map((pair) => pair.split(/=(.*)/s, 2))));
}

/* Letters: Greek and others that stand for a quantity. */
const LETTERS = signs(`alpha=α beta=β gamma=γ delta=δ epsilon=ϵ varepsilon=ε zeta=ζ eta=η theta=θ
  vartheta=ϑ iota=ι kappa=κ lambda=λ mu=μ nu=ν xi=ξ omicron=ο pi=π varpi=ϖ rho=ρ varrho=ϱ sigma=σ
  varsigma=ς tau=τ upsilon=υ phi=ϕ varphi=φ chi=χ psi=ψ omega=ω Gamma=Γ Delta=Δ Theta=Θ Lambda=Λ
  Xi=Ξ Pi=Π Sigma=Σ Upsilon=Υ Phi=Φ Psi=Ψ Omega=Ω infty=∞ partial=∂ nabla=∇ hbar=ℏ ell=ℓ Re=ℜ Im=ℑ
  aleph=ℵ wp=℘ emptyset=∅ varnothing=∅ imath=ı jmath=ȷ degree=° angle=∠ triangle=△ top=⊤ bot=⊥
  ldots=… dots=… cdots=⋯ vdots=⋮ ddots=⋱ dotsc=… dotsb=⋯ prime=′ checkmark=✓ S=§ %=% #=# $=$ _=_`);

const OPERATORS = signs(`pm=± mp=∓ times=× div=÷ cdot=⋅ ast=∗ star=⋆ circ=∘ bullet=∙ oplus=⊕
  ominus=⊖ otimes=⊗ odot=⊙ wedge=∧ land=∧ vee=∨ lor=∨ cap=∩ cup=∪ setminus=∖ le=≤ leq=≤ ge=≥ geq=≥
  ne=≠ neq=≠ ll=≪ gg=≫ approx=≈ sim=∼ simeq=≃ cong=≅ equiv=≡ propto=∝ prec=≺ succ=≻ in=∈ notin=∉
  ni=∋ subset=⊂ subseteq=⊆ supset=⊃ supseteq=⊇ forall=∀ exists=∃ nexists=∄ neg=¬ lnot=¬ to=→
  rightarrow=→ leftarrow=← gets=← leftrightarrow=↔ Rightarrow=⇒ Leftarrow=⇐ Leftrightarrow=⇔ implies=⟹
  iff=⟺ longrightarrow=⟶ Longrightarrow=⟹ mapsto=↦ uparrow=↑ downarrow=↓ updownarrow=↕ hookrightarrow=↪
  rightleftharpoons=⇌ mid=∣ nmid=∤ parallel=∥ perp=⊥ vdash=⊢ models=⊨ therefore=∴ because=∵ colon=:
  langle=⟨ rangle=⟩ lfloor=⌊ rfloor=⌋ lceil=⌈ rceil=⌉ lvert=| rvert=| vert=| lVert=‖ rVert=‖ Vert=‖
  lbrace={ rbrace=} {={ }=} |=‖ dagger=† backslash=\\ lesssim=≲ gtrsim=≳ doteq=≐ asymp=≍ &=&
  triangleq=≜ coloneqq=≔ leqslant=⩽ geqslant=⩾`);

/* With limits above and below where there is room. */
const BIG = signs(`sum=∑ prod=∏ coprod=∐ bigcup=⋃ bigcap=⋂ bigoplus=⨁ bigotimes=⨂ bigvee=⋁ bigwedge=⋀
  lim=lim max=max min=min sup=sup inf=inf limsup=lim\u2009sup liminf=lim\u2009inf argmax=arg\u2009max
  argmin=arg\u2009min det=det Pr=Pr gcd=gcd`);
const INTEGRALS = signs("int=∫ iint=∬ iiint=∭ oint=∮");
const FUNCTIONS = new Set(("sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh coth log ln lg exp " +
  "dim ker deg arg hom mod").split(" "));

const ACCENTS = signs(`hat=^ widehat=^ bar=¯ vec=→ overrightarrow=→ dot=˙ ddot=¨ tilde=~
  widetilde=~ check=ˇ breve=˘ acute=´ grave=\``);
const SPACES = signs(",=0.17em :=0.22em ;=0.28em !=-0.17em quad=1em qquad=2em");
SPACES[" "] = SPACES["\n"] = "0.25em";

/* Alphabets of Unicode: where A, a and 0 begin, and the letters that stand elsewhere. */
const ALPHABETS = {
  __proto__: null,
  mathbb: [0x1d538, 0x1d552, 0x1d7d8, signs("C=ℂ H=ℍ N=ℕ P=ℙ Q=ℚ R=ℝ Z=ℤ")],
  mathcal: [0x1d49c, 0x1d4b6, 0, signs("B=ℬ E=ℰ F=ℱ H=ℋ I=ℐ L=ℒ M=ℳ R=ℛ e=ℯ g=ℊ o=ℴ")],
  mathfrak: [0x1d504, 0x1d51e, 0, signs("C=ℭ H=ℌ I=ℑ R=ℜ Z=ℨ")],
  mathbf: [0x1d400, 0x1d41a, 0x1d7ce, Object.create(null)],
  mathsf: [0x1d5a0, 0x1d5ba, 0x1d7e2, Object.create(null)],
  mathtt: [0x1d670, 0x1d68a, 0x1d7f6, Object.create(null)],
};
ALPHABETS.mathscr = ALPHABETS.mathcal;
ALPHABETS.boldsymbol = ALPHABETS.bm = ALPHABETS.mathbf;

function inAlphabet(name, text) {
  const [upper, lower, digit, odd] = ALPHABETS[name];
  return [...text].map((c) => {
    const code = c.charCodeAt(0);
    if (c in odd) return odd[c];
    if (/^[A-Z]$/.test(c)) return String.fromCodePoint(upper + code - 65);
    if (/^[a-z]$/.test(c)) return String.fromCodePoint(lower + code - 97);
    return /^\d$/.test(c) && digit ? String.fromCodePoint(digit + code - 48) : c;
  }).join("");
}

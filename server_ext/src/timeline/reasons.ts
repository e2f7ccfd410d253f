// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

/** Why, and what would change it, from a code and its numbers. */
import { bytes, instant } from './amounts.js';
import type { IExplanation, IHolder } from './contract.js';
import { foreign } from './foreign.js';
import { PHRASES, REMEDIES } from './phrases.js';
import type { ITranslator } from './translator.js';

const PLACEHOLDER = /\{[a-z]+\}/g;

/** How many holders are named; the others are counted. */
const MOST_HOLDERS = 3;

/** Return an explanation as one sentence, with its numbers and holders. */
export function sentence(
  trans: ITranslator,
  explanation: IExplanation,
  time: (at: number) => string
): string {
  const { reason } = explanation;
  // A newer controller has codes that have no words here yet.
  const phrase = PHRASES[reason]?.(trans) ?? spelled(reason);
  let text = filled(phrase, valuesOf(trans, explanation));
  const machine = foreign(explanation.machine);
  if (machine) {
    text = trans.__('on %1, %2', machine, text);
  }
  const detail = foreign(explanation.detail);
  if (detail) {
    text = trans.__('%1 (%2)', text, detail);
  }
  const holders = explanation.holders ?? [];
  if (holders.length > 0) {
    text = trans.__('%1; %2', text, heldBy(trans, holders, time));
  }
  return trans.__('%1.', capital(text));
}

/** Return what would change it, and who can do that; empty for an unknown code. */
export function remedy(trans: ITranslator, explanation: IExplanation): string {
  return REMEDIES[explanation.reason]?.(trans) ?? '';
}

/** Return a text with its first letter as a sentence begins. */
export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Return a text for the inside of a sentence; a code or a name keeps its case. */
export function inside(text: string): string {
  const second = text.charAt(1);
  const isName =
    second !== second.toLowerCase() && second === second.toUpperCase();
  return isName ? text : text.charAt(0).toLowerCase() + text.slice(1);
}

function spelled(code: string): string {
  return foreign(code.replaceAll('_', ' '));
}

/** Return the placeholders that have a value. */
function valuesOf(
  trans: ITranslator,
  explanation: IExplanation
): Map<string, string> {
  const values = new Map<string, string>();
  const subject = foreign(explanation.subject);
  if (subject) {
    values.set('{subject}', subject);
  }
  for (const name of ['requested', 'capacity', 'free'] as const) {
    const number = explanation[name] ?? null;
    if (number !== null) {
      values.set(`{${name}}`, amount(trans, number, explanation.unit ?? null));
    }
  }
  return values;
}

/** Return the phrase with its placeholders filled and its empty parts left out. */
function filled(phrase: string, values: ReadonlyMap<string, string>): string {
  const kept = phrase.replace(/\[([^\]]*)\]/g, (_, part: string) =>
    (part.match(PLACEHOLDER) ?? []).every(name => values.has(name)) ? part : ''
  );
  return kept.replace(PLACEHOLDER, name => values.get(name) ?? 'it');
}

function heldBy(
  trans: ITranslator,
  holders: readonly IHolder[],
  time: (at: number) => string
): string {
  const told = holders
    .slice(0, MOST_HOLDERS)
    .map(holder => one(trans, holder, time));
  const more = holders.length - told.length;
  if (more > 0) {
    told.push(trans.__('and %1 more', more));
  }
  return trans.__('held by %1', told.join(', '));
}

function one(
  trans: ITranslator,
  holder: IHolder,
  time: (at: number) => string
): string {
  const owner = foreign(holder.owner) || trans.__('somebody else');
  const title = foreign(holder.title);
  const name = title ? trans.__('%1 (%2)', owner, title) : owner;
  const ends = instant(holder.ends_by);
  return ends === null
    ? trans.__('%1 with no known end', name)
    : trans.__('%1 until %2 at the latest', name, time(ends));
}

function amount(
  trans: ITranslator,
  number: number,
  unit: string | null
): string {
  switch (unit) {
    case null:
      return String(number);
    case 'bytes':
      return bytes(trans, number);
    case 'milli_cores':
      return trans._n('%1 core', '%1 cores', number / 1000);
    case 'seconds':
      return seconds(number);
    case 'devices':
      return trans._n('%1 device', '%1 devices', number);
    case 'workloads':
      return trans._n('%1 workload', '%1 workloads', number);
    default: {
      const name = spelled(unit);
      return `${number} ${number === 1 ? name.replace(/s$/, '') : name}`;
    }
  }
}

/** Return seconds as the catalog writes them, such as `1h30m`. */
function seconds(number: number): string {
  const spans = [
    ['d', 86_400],
    ['h', 3_600],
    ['m', 60],
    ['s', 1]
  ] as const;
  let rest = number;
  let text = '';
  for (const [letter, span] of spans) {
    const count = Math.floor(rest / span);
    rest -= count * span;
    text += count ? `${count}${letter}` : '';
  }
  return text || '0s';
}

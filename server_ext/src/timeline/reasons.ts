// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

/** Why, and what would change it, from a code and its numbers. */
import { bytes, instant } from './amounts.js';
import type { Rounding } from './amounts.js';
import type { IExplanation, IHolder, Reason } from './contract.js';
import { fill, say } from './fill.js';
import type { Values } from './fill.js';
import { foreign } from './foreign.js';
import { CAUSES, PHRASES, REMEDIES, TEXTS } from './phrases.js';
import type { Phrase } from './phrases.js';
import type { ITranslator } from './translator.js';

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
  const phrase = PHRASES[reason] as Phrase | undefined;
  const said = phrase ? trans.__(phrase) : spelled(reason);
  let text = fill(said, valuesOf(trans, explanation));
  const machine = foreign(explanation.machine);
  if (machine) {
    text = say(trans, TEXTS.on_machine, { machine, what: text });
  }
  // Some of it is a fixed text of the controller's.
  const detail = foreign(
    explanation.detail ? trans.__(explanation.detail) : ''
  ).replace(/\.+$/, '');
  if (detail) {
    text = say(trans, TEXTS.with_detail, { what: text, detail });
  }
  const holders = explanation.holders ?? [];
  if (holders.length > 0 && reason !== 'promise_broken') {
    text = say(trans, TEXTS.with_holders, {
      what: text,
      holders: heldBy(trans, holders, time)
    });
  }
  return say(trans, TEXTS.sentence, { what: capital(text) });
}

/** Return what would change it, and who can do that; empty for an unknown code. */
export function remedy(trans: ITranslator, explanation: IExplanation): string {
  const phrase = REMEDIES[explanation.reason] as Phrase | undefined;
  return phrase ? trans.__(phrase) : '';
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
function valuesOf(trans: ITranslator, explanation: IExplanation): Values {
  const values: Record<string, string> = {
    subject:
      explanation.reason === 'promise_broken'
        ? because(trans, explanation)
        : cause(trans, explanation)
  };
  for (const name of ['requested', 'capacity', 'free'] as const) {
    const number = explanation[name] ?? null;
    if (number !== null) {
      // What is asked for is never said to be less, nor what there is more.
      const rounding = name === 'requested' ? 'up' : 'down';
      values[name] = amount(trans, number, explanation.unit ?? null, rounding);
    }
  }
  if ((explanation.free ?? null) !== null) {
    values.left = left(trans, explanation, values);
  }
  return values;
}

/** Return what it is about; where an agent said no, its own reason in words. */
function cause(trans: ITranslator, { reason, subject }: IExplanation): string {
  const code = subject as keyof typeof PHRASES | null | undefined;
  const phrase =
    reason === 'agent_rejected' && code ? PHRASES[code] : undefined;
  return phrase ? say(trans, phrase) : foreign(subject);
}

/** Return why a promise cannot be kept; empty where nothing was said. */
function because(trans: ITranslator, explanation: IExplanation): string {
  const cause = explanation.subject ?? '';
  const phrase = CAUSES[cause] ?? PHRASES[cause as Reason];
  return phrase
    ? fill(trans.__(phrase), { who: who(trans, explanation.holders?.[0]) })
    : spelled(cause);
}

/** Return whose server came before. */
function who(trans: ITranslator, first: IHolder | undefined): string {
  if (first?.own) {
    return say(trans, TEXTS.own_server);
  }
  const owner = foreign(first?.owner);
  return owner
    ? say(trans, TEXTS.server_of, { owner })
    : say(trans, TEXTS.other_server);
}

/** Return what is free of how much; the unit was just named, if it is a word. */
function left(
  trans: ITranslator,
  { free, capacity, unit }: IExplanation,
  values: Readonly<Record<string, string>>
): string {
  if ((capacity ?? null) === null) {
    return values.free ?? '';
  }
  const scale = { milli_cores: 1000, devices: 1, workloads: 1 }[unit ?? ''];
  return say(
    trans,
    TEXTS.part,
    scale
      ? { free: (free ?? 0) / scale, capacity: (capacity ?? 0) / scale }
      : { free: values.free ?? '', capacity: values.capacity ?? '' }
  );
}

function heldBy(
  trans: ITranslator,
  holders: readonly IHolder[],
  time: (at: number) => string
): string {
  const shown = holders.slice(0, MOST_HOLDERS);
  const held = shown
    .filter(holder => !holder.promised)
    .map(holder => one(trans, holder, time));
  // Who holds nothing yet was promised it.
  const promised = shown
    .filter(holder => holder.promised)
    .map(holder => named(trans, holder));
  const more = holders.length - shown.length;
  if (more > 0) {
    (promised.length > 0 ? promised : held).push(
      say(trans, TEXTS.more_holders, { count: more })
    );
  }
  const parts = [
    [TEXTS.held_by, held],
    [TEXTS.promised_to, promised]
  ] as const;
  return parts
    .filter(([, told]) => told.length > 0)
    .map(([phrase, told]) => say(trans, phrase, { holders: told.join(', ') }))
    .join('; ');
}

function named(trans: ITranslator, holder: IHolder): string {
  let owner = foreign(holder.owner) || say(trans, TEXTS.somebody);
  if (holder.own) {
    // Somebody else who reads this is told the name.
    owner = say(trans, TEXTS.you, { owner });
  }
  const title = foreign(holder.title);
  return title ? say(trans, TEXTS.with_title, { owner, title }) : owner;
}

function one(
  trans: ITranslator,
  holder: IHolder,
  time: (at: number) => string
): string {
  const name = named(trans, holder);
  const ends = instant(holder.ends_by);
  let text =
    ends === null
      ? say(trans, TEXTS.no_known_end, { name })
      : say(trans, TEXTS.until, { name, time: time(ends) });
  // Each says the one before it, and more.
  const more = (phrase: Phrase, at?: string | null, values: Values = {}) => {
    const known = instant(at);
    if (known !== null) {
      text = say(trans, phrase, { holder: text, time: time(known), ...values });
    }
  };
  const idle = instant(holder.idle_since);
  if (idle !== null && holder.idle_ends) {
    more(TEXTS.idle, holder.idle_ends, { since: time(idle) });
  } else {
    more(TEXTS.at_rest, holder.idle_since);
  }
  const likely = holder.likely_end;
  more(TEXTS.likely_done, likely?.late, { count: likely?.samples ?? '' });
  more(TEXTS.asked, holder.asked_at);
  return text;
}

function amount(
  trans: ITranslator,
  number: number,
  unit: string | null,
  rounding: Rounding
): string {
  switch (unit) {
    case null:
      return String(number);
    case 'bytes':
      return bytes(trans, number, rounding);
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

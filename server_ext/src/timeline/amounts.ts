// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

import type { ITranslator } from './translator.js';

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** What stands where a number is not known. */
export const UNKNOWN = '—';

/** Return the milliseconds of a date on the wire; null where there is none. */
export function instant(at: string | null | undefined): number | null {
  const milliseconds = Date.parse(at ?? '');
  return Number.isNaN(milliseconds) ? null : milliseconds;
}

/** Return a length of time with its two largest units; clocks that differ give 0. */
export function duration(trans: ITranslator, seconds: number | null): string {
  if (seconds === null || Number.isNaN(seconds)) {
    return UNKNOWN;
  }
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < MINUTE) {
    return trans.__('%1 s', whole);
  }
  if (whole < HOUR) {
    return trans.__('%1 min %2 s', Math.floor(whole / MINUTE), whole % MINUTE);
  }
  const minutes = Math.floor((whole % HOUR) / MINUTE);
  if (whole < DAY) {
    return trans.__('%1 h %2 min', Math.floor(whole / HOUR), minutes);
  }
  const hours = Math.floor((whole % DAY) / HOUR);
  return trans._n(
    '%1 day %2 h',
    '%1 days %2 h',
    Math.floor(whole / DAY),
    hours
  );
}

/** Return a length of time that somebody chose: `8 h`, and not `8 h 0 min`. */
export function span(trans: ITranslator, seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole >= DAY && whole % DAY < HOUR) {
    return trans._n('%1 day', '%1 days', Math.floor(whole / DAY));
  }
  if (whole >= HOUR && whole < DAY && whole % HOUR < MINUTE) {
    return trans.__('%1 h', Math.floor(whole / HOUR));
  }
  if (whole >= MINUTE && whole < HOUR && whole % MINUTE === 0) {
    return trans.__('%1 min', Math.floor(whole / MINUTE));
  }
  return duration(trans, seconds);
}

/** Return a length of time that is only approximately known, such as one to come. */
export function roughly(trans: ITranslator, seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 2 * MINUTE) {
    return trans.__('%1 s', whole);
  }
  if (whole < HOUR) {
    return trans.__('%1 min', Math.floor(whole / MINUTE));
  }
  return duration(trans, whole);
}

/** Which way an amount may be rounded. */
export type Rounding = 'even' | 'up' | 'down';

/** Return an amount of memory for people, to one decimal, as the Hub rounds it. */
export function bytes(
  trans: ITranslator,
  amount: number,
  rounding: Rounding = 'even'
): string {
  const units = ['KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
  let power = units.length;
  while (power > 0 && amount < 1024 ** power) {
    power -= 1;
  }
  const unit = units[power - 1];
  if (unit === undefined) {
    return trans._n('%1 byte', '%1 bytes', amount);
  }
  const tenths = (amount * 10) / 1024 ** power;
  // Half to even: one Hub must not say 1.2 where the other part says 1.3.
  const isHalf = tenths % 1 === 0.5;
  const rounded = {
    even: () => (isHalf ? 2 * Math.round(tenths / 2) : Math.round(tenths)),
    up: () => Math.ceil(tenths),
    down: () => Math.floor(tenths)
  };
  return `${rounded[rounding]() / 10} ${unit}`;
}

/** Return the time of day where the reader is, and the day where it is not today's. */
export function clock(at: number, now: number, locale?: string): string {
  const format = (options: Intl.DateTimeFormatOptions, moment: number) =>
    new Intl.DateTimeFormat(locale, options).format(moment);
  const day = { day: 'numeric', month: 'short', year: 'numeric' } as const;
  if (format(day, at) === format(day, now)) {
    return format({ timeStyle: 'medium' }, at);
  }
  const year = { year: 'numeric' } as const;
  const isThisYear = format(year, at) === format(year, now);
  const time = { hour: 'numeric', minute: '2-digit' } as const;
  return format(
    { ...day, year: isThisYear ? undefined : 'numeric', ...time },
    at
  );
}

/** Return the date and the time of day where the reader is, with the zone. */
export function moment(at: number, locale?: string): string {
  return new Intl.DateTimeFormat(locale, {
    dateStyle: 'medium',
    timeStyle: 'long'
  }).format(at);
}

/** Return the moment in UTC, as support reads it: `2026-11-29 14:02:11`. */
export function utc(at: number | null): string {
  return at === null
    ? UNKNOWN
    : new Date(at).toISOString().slice(0, 19).replace('T', ' ');
}

// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

/**
 * Draws a timeline: the same rows in JupyterLab, in a notebook's output, on the Hub's
 * pages and on the fleet page.
 */
import { duration, instant, moment } from './amounts.js';
import type { IExplanation, ITimeline, ITimelineEvent } from './contract.js';
import { foreign } from './foreign.js';
import { Children, setAttribute, setText } from './patch.js';
import { TEXTS } from './phrases.js';
import { PHASES, view } from './view.js';
import type { IStep, IView, StepStatus } from './view.js';
import type { Words } from './words.js';

/** A button below a timeline. */
export interface IAction {
  key: string;
  label: string;
  run: () => void;
}

/** How a timeline is drawn; a part that is not given is not drawn. */
export interface IRenderOptions {
  /** Milliseconds since the epoch, by the controller's clock. Default: `as_of`. */
  now?: number;
  /** What stands in the way of newer data; spoken, so it must not tick. */
  notice?: string;
  /** How fresh the data are; may tick. */
  heard?: string;
  /** Whether a time is told as a distance ("2 min ago") or by the clock. */
  times?: 'relative' | 'absolute';
  /** It will never change: no status that a screen reader would wait for. */
  isFrozen?: boolean;
  /** Whether the page around it says already what is now. */
  isTold?: boolean;
  /** Nothing has been heard yet: empty rows instead of words. */
  loading?: boolean;
  actions?: readonly IAction[];
}

const GLYPHS: Readonly<Record<StepStatus, string>> = {
  done: '✓',
  now: '●',
  todo: '○',
  failed: '✕',
  held: '‖'
};

/** How many rows of what came since are drawn at most. */
const MOST_ROWS = 50;

/** What each function that draws a part is handed. */
interface IDrawing {
  timeline: ITimeline;
  shown: IView;
  words: Words;
  now: number;
  times: 'relative' | 'absolute';
  isFrozen: boolean;
}

/**
 * Make `element` show a timeline, or without one the notice and the actions.
 *
 * It may be called as often as time passes: what is there is changed in place, and only
 * where it differs. `element` belongs to it.
 */
export function render(
  element: HTMLElement,
  timeline: ITimeline | null,
  words: Words,
  options: IRenderOptions = {}
): void {
  const outer = new Children(element);
  const section = outer.put('section', 'timeline', 'fleet-Timeline');
  outer.end();
  setAttribute(section, 'aria-label', words.title(timeline));
  setAttribute(section, 'aria-busy', options.loading ? 'true' : null);
  const parts = new Children(section);
  const now = options.now ?? instant(timeline?.as_of) ?? 0;
  const drawing = timeline && {
    timeline,
    words,
    now,
    shown: view(timeline, now),
    times: options.times ?? 'relative',
    isFrozen: options.isFrozen ?? false
  };
  drawStatus(parts, drawing, options);
  if (drawing) {
    drawSpent(parts, drawing);
    drawSteps(parts, drawing);
    drawSince(parts, drawing);
    drawLimits(parts, drawing);
    drawRuns(parts, drawing);
  } else if (options.loading) {
    drawSkeleton(parts);
  }
  parts.text('p', 'heard', options.heard ?? '');
  drawActions(parts, options.actions ?? []);
  parts.end();
}

function drawStatus(
  parts: Children,
  drawing: IDrawing | null,
  { notice = '', isFrozen = false, isTold = false }: IRenderOptions
): void {
  // There before its text is, or some screen readers do not speak the first one.
  const status = parts.put('div', 'status');
  setAttribute(status, 'role', isFrozen ? null : 'status');
  const lines = new Children(status);
  if (drawing) {
    const { words, timeline, shown } = drawing;
    lines.text('p', 'headline', isTold ? '' : words.lead(timeline, shown));
  }
  lines.text('p', 'notice', notice);
  lines.end();
}

function drawSpent(parts: Children, { shown, words }: IDrawing): void {
  parts.text('p', 'spent', words.spent(shown));
  if (shown.waitingSeconds + shown.startingSeconds < 1) {
    // Nothing to compare: forced colours would leave two dots of it.
    return;
  }
  const bar = parts.put('div', 'bar');
  // The same in words stands above it.
  setAttribute(bar, 'aria-hidden', 'true');
  const segments = new Children(bar);
  const waiting = segments.put('span', 'waiting', 'fleet-Timeline-bar-waiting');
  const starting = segments.put(
    'span',
    'starting',
    'fleet-Timeline-bar-starting'
  );
  waiting.style.flexGrow = String(Math.round(shown.waitingSeconds));
  starting.style.flexGrow = String(Math.round(shown.startingSeconds));
}

function drawSteps(parts: Children, drawing: IDrawing): void {
  const { workload, generation } = drawing.timeline;
  // Another start has rows of its own, none of them opened by anybody yet.
  const key = `steps-${workload}-${generation}`;
  const list = parts.put('ol', key, 'fleet-Timeline-steps');
  const rows = new Children(list);
  for (const step of drawing.shown.steps) {
    const row = rows.put('li', step.phase, 'fleet-Timeline-step');
    const isNow =
      step.phase === drawing.shown.at &&
      step.status !== 'done' &&
      step.status !== 'todo';
    setAttribute(row, 'data-phase', step.phase);
    setAttribute(row, 'data-status', step.status);
    setAttribute(row, 'aria-current', isNow ? 'step' : null);
    drawStep(new Children(row), step, drawing, isNow);
  }
  rows.end();
}

function drawStep(
  parts: Children,
  step: IStep,
  drawing: IDrawing,
  isNow: boolean
): void {
  const hasMore =
    step.began !== null ||
    step.explanation !== null ||
    step.progress.length > 0;
  if (!hasMore) {
    drawLine(parts.put('div', 'line'), step, drawing);
    parts.end();
    return;
  }
  const details = parts.put('details', 'more');
  openWhile(details, isNow);
  const inside = new Children(details);
  const summary = inside.put('summary', 'line');
  drawLine(summary, step, drawing);
  drawFacts(inside.put('dl', 'facts'), step, drawing);
  inside.end();
  parts.end();
}

/** Open the step that is under way by itself, until its reader decides otherwise. */
function openWhile(details: HTMLDetailsElement, isNow: boolean): void {
  if (details.dataset['fleetNow'] === undefined) {
    details.addEventListener('click', event => {
      if ((event.target as Element).closest('summary')) {
        details.dataset['fleetDecided'] = 'yes';
      }
    });
  }
  const changed = details.dataset['fleetNow'] !== String(isNow);
  details.dataset['fleetNow'] = String(isNow);
  if (changed && details.dataset['fleetDecided'] === undefined) {
    details.open = isNow;
  }
}

function drawLine(line: HTMLElement, step: IStep, drawing: IDrawing): void {
  const { words, timeline, shown } = drawing;
  const parts = new Children(line);
  const glyph = parts.put('span', 'glyph');
  setText(glyph, GLYPHS[step.status]);
  setAttribute(glyph, 'role', 'img');
  setAttribute(glyph, 'aria-label', words.status(step.status));
  const label = parts.put('span', 'label');
  setText(label, words.step(step, timeline));
  if (step.phase === 'ready' && shown.readyAt !== null) {
    const text = words.clock(shown.readyAt, shown.now);
    drawTime(parts, 'took', shown.readyAt, text, drawing);
  } else if (step.seconds !== null) {
    const took = parts.put('time', 'took');
    setText(took, duration(words.trans, step.seconds));
    setAttribute(took, 'datetime', `PT${Math.floor(step.seconds)}S`);
  }
  parts.end();
}

/**
 * Put a moment: the day, the time and the zone appear when it is pointed at, or where
 * the clock is told how long ago it was. In what is frozen that would become untrue.
 */
function drawTime(
  parts: Children,
  key: string,
  at: number,
  text: string,
  { words, now, times, isFrozen }: IDrawing
): void {
  const time = parts.put('time', key);
  setText(time, text);
  setAttribute(time, 'datetime', new Date(at).toISOString());
  const isAgo = times === 'absolute' && !isFrozen;
  const title = isAgo ? words.ago(at, now) : moment(at, words.locale);
  setAttribute(time, 'title', title);
}

function drawFacts(list: HTMLElement, step: IStep, drawing: IDrawing): void {
  const { words } = drawing;
  const facts = new Children(list);
  if (step.began !== null) {
    const term = facts.put('dt', 'began-term', 'fleet-Timeline-term');
    setText(term, words.text(TEXTS.began));
    const fact = facts.put('dd', 'began', 'fleet-Timeline-fact');
    const inside = new Children(fact);
    drawTime(inside, 'when', step.began, when(step.began, drawing), drawing);
    inside.end();
  }
  if (step.phase === 'asked') {
    const held = foreign(drawing.timeline.class);
    fact(facts, 'class', words.text(TEXTS.class_term), held);
  }
  drawWhy(facts, step.explanation, drawing);
  for (const note of step.notes) {
    const told = words.note(note, drawing.now);
    fact(facts, `note-${note.seq}`, words.text(TEXTS.note_term), told);
  }
  for (const [number, way] of step.instead.entries()) {
    const why = words.why(way, drawing.now);
    fact(facts, `instead-${number}`, words.text(TEXTS.instead_term), why);
  }
  for (const progress of step.progress) {
    const key = `progress-${progress.step}`;
    fact(facts, key, words.text(TEXTS.step_term), words.progress(progress));
  }
  facts.end();
}

function drawWhy(
  facts: Children,
  explanation: IExplanation | null,
  { words, now }: IDrawing
): void {
  if (explanation) {
    const why = words.why(explanation, now);
    fact(facts, 'why', words.text(TEXTS.why_term), why);
    fact(facts, 'help', words.text(TEXTS.help_term), words.remedy(explanation));
  }
}

function fact(facts: Children, key: string, term: string, text: string): void {
  if (text) {
    facts.text('dt', `${key}-term`, term, 'fleet-Timeline-term');
    facts.text('dd', key, text, 'fleet-Timeline-fact');
  }
}

function when(at: number, { words, now, times }: IDrawing): string {
  return times === 'relative'
    ? words.both(words.ago(at, now), words.clock(at, now))
    : moment(at, words.locale);
}

function drawSince(parts: Children, drawing: IDrawing): void {
  const { shown, words } = drawing;
  const events = shown.since.slice(-MOST_ROWS);
  const rows = listOf(parts, 'since', words.text(TEXTS.since_then), events);
  for (const event of events) {
    const row = rows.put('li', String(event.seq), 'fleet-Timeline-row');
    setAttribute(row, 'data-kind', event.kind);
    drawEvent(new Children(row), event, drawing);
  }
  rows.end();
}

function drawEvent(
  parts: Children,
  event: ITimelineEvent,
  drawing: IDrawing
): void {
  const { words, now } = drawing;
  const line = new Children(parts.put('div', 'line'));
  const glyph = line.put('span', 'glyph');
  setText(glyph, eventGlyph(event));
  setAttribute(glyph, 'aria-hidden', 'true');
  setText(line.put('span', 'label'), words.event(event));
  const at = instant(event.at);
  if (at !== null) {
    drawTime(line, 'took', at, words.clock(at, now), drawing);
  }
  line.end();
  if (event.explanation && event.kind !== 'note') {
    parts.text('p', 'why', words.why(event.explanation, now));
  }
  parts.end();
}

function eventGlyph(event: ITimelineEvent): string {
  const glyphs: Record<string, string> = {
    silent: GLYPHS.held,
    returned: GLYPHS.done,
    failed: GLYPHS.failed,
    stopped: GLYPHS.failed
  };
  return glyphs[event.kind] ?? '·';
}

function drawLimits(parts: Children, { timeline, words, now }: IDrawing): void {
  const lines = words.limits(timeline.limits, now);
  const rows = listOf(parts, 'limits', words.text(TEXTS.limits), lines);
  for (const limit of lines) {
    const row = rows.put('li', limit.key, 'fleet-Timeline-row');
    const inside = new Children(row);
    const text = inside.put('span', 'label');
    setText(text, limit.text);
    if (limit.endsAt !== null) {
      setAttribute(row, 'title', moment(limit.endsAt, words.locale));
    }
    inside.end();
  }
  rows.end();
}

function drawRuns(parts: Children, { shown, words, now }: IDrawing): void {
  if (shown.runs.length === 0) {
    return;
  }
  const details = parts.put('details', 'runs');
  const inside = new Children(details);
  const { trans } = words;
  const title = trans._n(
    '%1 earlier start',
    '%1 earlier starts',
    shown.runs.length
  );
  inside.text('summary', 'title', title);
  const rows = new Children(inside.put('ul', 'list'));
  for (const run of shown.runs.slice(0, MOST_ROWS)) {
    rows.text(
      'li',
      String(run.generation),
      words.run(run, now),
      'fleet-Timeline-row'
    );
  }
  rows.end();
  inside.end();
}

/** Put a list with a title, or nothing where there is nothing to list. */
function listOf(
  parts: Children,
  key: string,
  title: string,
  items: readonly unknown[]
): Children {
  if (items.length === 0) {
    // A list that is not in the page takes the rows that are never put.
    return new Children(document.createElement('ul'));
  }
  const heading = parts.text(
    'p',
    `${key}-title`,
    title,
    'fleet-Timeline-title'
  );
  if (heading) {
    setAttribute(heading, 'aria-hidden', 'true');
  }
  const list = parts.put('ul', key, 'fleet-Timeline-list');
  setAttribute(list, 'aria-label', title);
  return new Children(list);
}

function drawSkeleton(parts: Children): void {
  const list = parts.put('div', 'skeleton');
  setAttribute(list, 'aria-hidden', 'true');
  const rows = new Children(list);
  PHASES.forEach(phase =>
    rows.put('span', phase, 'fleet-Timeline-skeleton-row')
  );
  rows.end();
}

function drawActions(parts: Children, actions: readonly IAction[]): void {
  if (actions.length === 0) {
    return;
  }
  const bar = new Children(parts.put('div', 'actions'));
  for (const action of actions) {
    const button = bar.put('button', action.key, 'fleet-Timeline-action');
    button.type = 'button';
    setText(button, action.label);
    button.onclick = action.run;
  }
  bar.end();
}

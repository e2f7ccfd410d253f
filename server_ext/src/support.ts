// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

/** What a user pastes into a message, whatever is known. */
import type { TimelineModel } from './model.js';
import { heard, notice } from './standing.js';
import { utc } from './timeline/amounts.js';
import { VERSION } from './timeline/contract.js';
import { foreign } from './timeline/foreign.js';
import { asText, english } from './timeline/index.js';

/** Return the timeline as text, or why there is none. */
export function asSupportText(
  model: TimelineModel,
  application: string
): string {
  const extra = [
    ['versions', `fleet_lab ${VERSION}, ${foreign(application)}`],
    ['standing', [model.standing, model.cause].filter(Boolean).join(' ')],
    ['notice', notice(english, model)],
    ['freshness', heard(english, model)],
    ['copied', `${utc(Date.now())} UTC by the browser’s clock`]
  ] as const;
  if (model.timeline) {
    return asText(model.timeline, model.now, extra);
  }
  return extra
    .filter(([, fact]) => fact)
    .map(([name, fact]) => `${name.padEnd(10)}${fact}\n`)
    .join('');
}

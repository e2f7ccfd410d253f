// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

/** A timeline as a file for whoever helps, where copying is not enough. */
import { utc } from './amounts.js';
import type { ITimeline } from './contract.js';
import { foreign } from './foreign.js';

/** Return the name of a file: of which server, and of when in UTC. */
export function fileName(
  timeline: ITimeline | null,
  now: number,
  extension: 'txt' | 'json'
): string {
  // No server's name may lead to another folder, nor hide what the file is.
  const server = foreign(timeline?.server).replace(/[^\p{L}\p{N}_-]+/gu, '-');
  const moment = utc(now).replace(' ', 'T').replaceAll(':', '');
  return `admission-${server || 'default'}-${moment}Z.${extension}`;
}

/** Let the browser keep `text` as a file. */
export function toFile(name: string, text: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text]));
  link.download = name;
  link.click();
  // The browser has begun to read it by then.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

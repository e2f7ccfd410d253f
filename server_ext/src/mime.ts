// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

/**
 * Draws a timeline that a cell returned: the panel's own rows, frozen at the moment
 * that the document tells.
 */
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Widget } from '@lumino/widgets';

import { localeOf } from './locale.js';
import { instant, moment } from './timeline/amounts.js';
import { say } from './timeline/fill.js';
import { TEXTS } from './timeline/phrases.js';
import { SCHEMA } from './timeline/contract.js';
import { Words, english, render } from './timeline/index.js';
import type { ITimeline } from './timeline/index.js';
import { NAME } from './tokens.js';

const MIME_TYPE = 'application/vnd.jupyterhub-fleet.timeline.v1+json';

/** How many events of a notebook's own document are drawn. */
const MOST_EVENTS = 500;

class RenderedTimeline extends Widget implements IRenderMime.IRenderer {
  constructor(options: IRenderMime.IRendererOptions) {
    super();
    this.addClass('jp-FleetOutput');
    const { translator } = options;
    this._words = new Words(
      translator?.load('fleet_lab') ?? english,
      localeOf(translator?.languageCode, navigator.languages)
    );
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    const { trans, locale } = this._words;
    const timeline = model.data[MIME_TYPE] as ITimeline | null;
    const asOf = instant(timeline?.as_of);
    try {
      if (timeline?.schema !== SCHEMA || asOf === null) {
        throw new TypeError('no timeline');
      }
      const events = [...(timeline.events ?? [])].slice(-MOST_EVENTS);
      render(this.node, { ...timeline, events }, this._words, {
        times: 'absolute',
        heard: say(trans, TEXTS.as_of, { time: moment(asOf, locale) }),
        isFrozen: true
      });
    } catch {
      // A notebook's file can hold anything.
      this.node.textContent = trans.__(
        'This output holds no admission timeline that is understood here.'
      );
    }
  }

  private readonly _words: Words;
}

const extension: IRenderMime.IExtension = {
  id: `${NAME}:mime`,
  description: 'Draws the admission timeline in the output of a cell.',
  dataType: 'json',
  // Before the plain table that other applications show.
  rank: 0,
  rendererFactory: {
    safe: true,
    mimeTypes: [MIME_TYPE],
    createRenderer: options => new RenderedTimeline(options)
  }
};

export default extension;

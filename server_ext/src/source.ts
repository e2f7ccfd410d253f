// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';

import type { IAnswer, IQuestion, IReply, ISource } from './answer.js';

/** Asks the notebook server, with its own token and XSRF header. */
export class ServerSource implements ISource {
  constructor(private readonly _settings: ServerConnection.ISettings) {}

  /** Rejects where nobody answers, or where the answer is no document of ours. */
  async ask(question: IQuestion): Promise<IReply> {
    const query = URLExt.objectToQueryString({
      after: question.after,
      wait: question.waitSeconds
    });
    const response = await ServerConnection.makeRequest(
      URLExt.join(this._settings.baseUrl, 'fleet/api/timeline') + query,
      {
        signal: question.signal,
        headers: question.etag ? { 'If-None-Match': question.etag } : {}
      },
      this._settings
    );
    const answer =
      response.status === 200 ? ((await response.json()) as IAnswer) : null;
    if (answer && typeof answer.standing !== 'string') {
      // A log-in page, or another program at this address.
      throw new TypeError('The answer is not an admission timeline.');
    }
    return {
      status: response.status,
      etag: response.headers.get('ETag'),
      answer
    };
  }
}

import { Component, type ReactNode } from 'react';
import { ProblemAlert } from './problem-alert.tsx';

/** An error in it is shown in its place: the rest of the page stays, with what was typed. */
export class Contained extends Component<{ children: ReactNode }, { error?: unknown }> {
  override state: { error?: unknown } = {};

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render() {
    return this.state.error === undefined ? this.props.children : <ProblemAlert error={this.state.error} />;
  }
}

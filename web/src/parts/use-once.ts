import { useState } from 'react';
import { Once } from './once.ts';

export function useOnce(): Once['send'] {
  const [once] = useState(() => new Once());
  return once.send.bind(once);
}

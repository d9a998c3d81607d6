import { useParams } from '@tanstack/react-router';

/** Of what the page is about. It may be written in capitals there; in the answers of the API it is not. */
export function useIdInAddress(): string {
  const { id = '' } = useParams({ strict: false });
  return id.toLowerCase();
}

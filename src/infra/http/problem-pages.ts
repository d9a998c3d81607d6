import type { FastifyInstance } from 'fastify';
import { NotFoundProblem } from './problem.js';
import { isProblemClass, problemClasses, type ProblemClass } from './problem-classes.js';

/** The pages that the `type` of a problem links to. */
export function serveProblemPages(server: FastifyInstance): void {
  server.get<{ Params: { class: string } }>('/ref/fouten/:class/', (request, reply) => {
    const name = request.params.class;
    if (!isProblemClass(name)) throw new NotFoundProblem(`There is no class of problems with the name ${name}.`);
    return reply.type('text/html; charset=utf-8').send(page(name));
  });
}

const page = (name: ProblemClass): string => {
  const { status, title, explanation, codes } = problemClasses[name];
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>${name}</title></head>
<body>
<h1>${name}</h1>
<p><strong>${status}</strong> ${title}</p>
<p>${explanation}</p>
<p>Codes: ${codes.map((code) => `<code>${code}</code>`).join(', ')}</p>
</body>
</html>
`;
};

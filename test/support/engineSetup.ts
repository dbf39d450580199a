// Container tests need an engine and an image with Node.js; `npm test` and `npm run test:container` hand both in.

export default function setup(): void {
  for (const name of ['DOCKER_HOST', 'BWF_TEST_IMAGE'])
    if (process.env[name] === undefined)
      throw new Error(`${name} is not set: run these tests with \`npm run test:container\`.`);
}

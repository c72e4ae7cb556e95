// Builds the three applications into dist/, as their own tools do: minified modules, parts that are loaded when needed.
import { readFile } from "node:fs/promises";
import { build } from "esbuild";
import { compile } from "svelte/compiler";

const svelte = {
  name: "svelte",
  setup(made) {
    made.onLoad({ filter: /\.svelte$/ }, async ({ path }) => {
      const source = await readFile(path, "utf8");
      return { contents: compile(source, { filename: path, generate: "client" }).js.code };
    });
  },
};

await build({
  entryPoints: ["react.jsx", "vue.js", "svelte.js"],
  outdir: "dist",
  bundle: true,
  minify: true,
  splitting: true,
  format: "esm",
  jsx: "automatic",
  conditions: ["svelte", "browser"],
  mainFields: ["svelte", "browser", "module", "main"],
  define: { "process.env.NODE_ENV": '"production"', __VUE_PROD_DEVTOOLS__: "false", __VUE_OPTIONS_API__: "true" },
  plugins: [svelte],
});

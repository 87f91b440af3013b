// Runs commands at a real terminal and draws what the terminal shows, as SVG for light and dark pages.
import { execFileSync } from "node:child_process";

const columns = 96, column = 8.4, line = 20, margin = 20, bar = 34;
const escape = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
// The classes of the codes that licet writes (SGR of ECMA-48).
const classes = { 1: "bold", 2: "faint", 31: "red", 32: "green", 33: "yellow", 34: "blue", 36: "cyan" };

// parts splits a line into texts with classes.
function parts(text) {
  let styles = [], at = 0;
  const all = [];
  for (const piece of text.split(/(\x1b\[[0-9;]*m)/)) {
    const code = /^\x1b\[([0-9;]*)m$/.exec(piece);
    if (!code) {
      if (piece.trim()) all.push({ text: piece, at, styles });
      at += piece.length;
      continue;
    }
    for (const n of code[1].split(";").map(Number)) {
      if (n !== 0 && !classes[n]) throw new Error(`the terminal got the unknown code ${n}`);
      styles = n === 0 ? [] : [...styles, classes[n]];
    }
  }
  return all;
}

export function drawTerminal(title, commands) {
  const script = ["set -e", `stty cols ${columns} rows 40`,
    ...commands.map((c, i) => `printf '${i > 0 ? "\\n" : ""}\\033[32m$\\033[0m %s\\n' ${JSON.stringify(c).replaceAll("$", "\\$")}\n${c}`)].join("\n");
  const shown = execFileSync("script", ["-qec", `bash -c '${script.replaceAll("'", "'\\''")}'`, "/dev/null"], { encoding: "utf8" });
  const lines = shown.trimEnd().split("\r\n");
  const width = Math.ceil(columns * column + 2 * margin), height = lines.length * line + bar + 1.5 * margin;
  const texts = lines.flatMap((text, i) => parts(text).map((p) =>
    `<text x="${(margin + p.at * column).toFixed(1)}" y="${bar + margin + i * line}" textLength="${(p.text.length * column).toFixed(1)}"` +
    `${p.styles.length ? ` class="${p.styles.join(" ")}"` : ""}>${escape(p.text)}</text>`));
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="t" font-size="14">
<title id="t">${escape(title)}</title>
<style>
text { fill: #1f2328; font-family: ui-monospace, "SFMono-Regular", "Liberation Mono", Menlo, Consolas, monospace; white-space: pre; }
.window { fill: #ffffff; stroke: #d1d9e0; }
.dot { fill: #d1d9e0; }
.bold { font-weight: 700; } .faint { opacity: .7; }
.red { fill: #b3261e; } .green { fill: #17693f; } .yellow { fill: #7a5200; } .blue, .cyan { fill: #2456c4; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; }
.window { fill: #161b22; stroke: #3d444d; }
.dot { fill: #3d444d; }
.red { fill: #ffa79f; } .green { fill: #86dcaa; } .yellow { fill: #f2c566; } .blue, .cyan { fill: #8fb4ff; }
}
</style>
<rect class="window" x=".5" y=".5" width="${width - 1}" height="${height - 1}" rx="10"/>
${[22, 42, 62].map((x) => `<circle class="dot" cx="${x}" cy="20" r="6"/>`).join("")}
${texts.join("\n")}
</svg>
`;
}

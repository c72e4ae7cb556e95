export default function Footer() {
  return <footer>a footer that came late <a href="/imprint">imprint</a></footer>;
}

// Hash routes.
import { createApp, h } from "vue";
import { RouterLink, RouterView, createRouter, createWebHashHistory } from "vue-router";

const Home = { render: () => h("p", ["home of Vue ", h("a", { href: "/vue/from-home" }, "on")]) };
const About = {
  data: () => ({ items: [] }),
  async mounted() { this.items = await (await fetch("/api/items")).json(); },
  render() { return h("div", ["about Vue", this.items.map((name, at) => h("a", { href: `/vue/item/${at}` }, name))]); },
};
const router = createRouter({
  history: createWebHashHistory(),
  routes: [{ path: "/", component: Home }, { path: "/about", component: About }],
});
const App = { render: () => h("main", [h(RouterLink, { to: "/about" }, () => "About"), h(RouterView)]) };
createApp(App).use(router).mount("#app");

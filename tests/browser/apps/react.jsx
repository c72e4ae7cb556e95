// History routes, data from an interface, a part of the program that is loaded when it is needed.
import { Suspense, lazy, useEffect, useState } from "react";
import { createRoot } from "react-dom/client";
import { BrowserRouter, Link, Navigate, Route, Routes, useParams } from "react-router-dom";

const Footer = lazy(() => import("./react-footer.jsx"));

function Items() {
  const [items, setItems] = useState([]);
  useEffect(() => {
    fetch("/api/items").then((answer) => answer.json()).then(setItems);
    document.title = "Items of React";
  }, []);
  return <ul>{items.map((name, at) => <li key={name}><Link to={`/items/${at}`}>{name}</Link></li>)}</ul>;
}

function Item() {
  const { at } = useParams();
  return <h1>Item number {at}</h1>;
}

createRoot(document.getElementById("root")).render(
  <BrowserRouter basename="/react">
    <Routes>
      <Route path="/" element={<Navigate to="/items" replace />} />
      <Route path="/items" element={<Items />} />
      <Route path="/items/:at" element={<Item />} />
    </Routes>
    <Suspense fallback="wait"><Footer /></Suspense>
  </BrowserRouter>,
);

import Larder

extension CaseList {
  mutating func addPageCases() {
    add(104, "", "pages of every size are complete, and only the last has no next cursor", in: .pages, checks: .scans) {
      trial in
      let keys: [StoreKey] = ["a", "b", "c", "d", "e", "f"]
      for count in [0, 1, 3, 6] {
        let store = try await trial.openElsewhere(withKeys: Array(keys.prefix(count)))
        for size in [1, 2, 3, 4, 6, 7, .max] {
          let pages = try await read(store.pages(size: size))
          let lengths = stride(from: 0, to: count, by: min(size, 100)).map { min(size, count - $0) }
          try expect(
            "the lengths of pages of size \(size) over \(count) entries", pages.map(\.entries.count), equals: lengths)
          try expect(
            "the keys of pages of size \(size) over \(count) entries", pages.flatMap(\.entries).map(\.key),
            equals: Array(keys.prefix(count)))
          try expect(
            "which pages have a next cursor", pages.map { $0.next != nil },
            equals: lengths.indices.map { $0 < lengths.count - 1 })
          let walked = try await store.pages(size: size).reduce(into: []) { $0.append($1) }
          try expect("the sequence of pages", walked, equals: pages)
        }
      }
    }
    add(105, "a", "insertions before the cursor do not repeat or shift entries", in: .pages, checks: .scans) {
      trial in
      let store = try await trial.open(withKeys: ["b", "d", "f", "h"])
      let first = try await store.pages(size: 2).page()
      try expect("the first page", first.entries.map(\.key), equals: ["b", "d"])
      try await store.apply([.set("a", nil), .set("c", nil), .set("e", nil)])
      let second = try await store.pages(size: 2).starting(after: first.next).page()
      try expect("the second page", second.entries.map(\.key), equals: ["e", "f"])
      let third = try await store.pages(size: 2).starting(after: second.next).page()
      try expect("the third page", third.entries.map(\.key), equals: ["h"])
      try expect("the cursor of the last page", third.next, equals: nil)
    }
    add(105, "b", "removals before the cursor do not skip entries", in: .pages, checks: .scans) { trial in
      let store = try await trial.open(withKeys: ["a", "b", "c", "d", "e"])
      let first = try await store.pages(size: 2).page()
      try await store.apply([.remove("a"), .remove("b")])
      let second = try await store.pages(size: 2).starting(after: first.next).page()
      try expect("the second page, after the cursor's key was removed", second.entries.map(\.key), equals: ["c", "d"])
      try await store.apply([.removeAll("d"...)])
      let third = try await store.pages(size: 2).starting(after: second.next).page()
      try expect("the keys of the page after all entries", third.entries.map(\.key), equals: [])
      try expect("the cursor of the last page", third.next, equals: nil)
    }
    add(
      105, "c", "an entry that exists throughout is on exactly one page while other entries change", in: .pages,
      checks: .scans
    ) {
      trial in
      var generator = trial.makeGenerator()
      for order in ScanOrder.allCases {
        let fixed = (0..<40).map { StoreKey("k\(100 + $0 * 2)") }
        let store = try await trial.openElsewhere(withKeys: fixed)
        var seen: [StoreKey] = []
        var cursor: PageCursor?
        repeat {
          let page = try await store.pages(size: 3, order: order).starting(after: cursor).page()
          seen += page.entries.map(\.key)
          cursor = page.next
          for _ in 0..<4 {
            let key = StoreKey("k\(100 + Int.random(in: 0..<40, using: &generator) * 2 + 1)")
            try await store.apply([Bool.random(using: &generator) ? .set(key, nil) : .remove(key)])
          }
        } while cursor != nil && seen.count < 1_000
        try expect(
          "the keys that existed throughout, \(order)", seen.filter(fixed.contains),
          equals: order == .ascending ? fixed : fixed.reversed())
        try expect("the number of repeated keys", seen.count - Set(seen).count, equals: 0)
      }
    }
    add(107, "", "a page starts after the cursor's key, which need not exist", in: .pages, checks: .scans) { trial in
      let store = try await trial.open(withKeys: ["a", "b", "b\0", "c"])
      let pages = store.pages(size: 9)
      for (key, expected) in [("b", ["b\0", "c"]), ("b\0", ["c"]), ("az", ["b", "b\0", "c"]), ("c", []), ("z", [])]
        as [(StoreKey, [StoreKey])]
      {
        try await expect(
          "the page after \(key)", pages.page(after: PageCursor(after: key)).entries.map(\.key), equals: expected)
        try await expect(
          "all pages after \(key)",
          read(pages.starting(after: PageCursor(after: key))).flatMap(\.entries).map(\.key), equals: expected)
      }
    }
    add(218, "", "a cursor round-trips through text", in: .pages, checks: .scans) { trial in
      let keys = ScanModel(UnusualKeys.all).keys(in: .all)
      let store = try await trial.open(withKeys: keys)
      for order in ScanOrder.allCases {
        var seen: [StoreKey] = []
        var text: String?
        repeat {
          let page = try await store.pages(size: 5, order: order).starting(after: text.map { try PageCursor($0) })
            .page()
          seen += page.entries.map(\.key)
          text = page.next?.text
        } while text != nil && seen.count < 1_000
        try expect("the keys of all pages, \(order)", seen, equals: order == .ascending ? keys : keys.reversed())
      }
      for text in ["", "1a.", "2a.YQ", "YQ", "1a.!", "1x.YQ"] {
        try await expect("a cursor from the text \(text)", throws: .invalidArgument) { try PageCursor(text) }
      }
    }
    add(219, "", "a cursor stays valid when the store is reopened", in: .pages, checks: .scans, needs: .persistence) {
      trial in
      var store = try await trial.open(withKeys: ["a", "b", "c", "d", "e"])
      var seen: [StoreKey] = []
      var text: String?
      repeat {
        let page = try await store.pages(size: 2).starting(after: text.map { try PageCursor($0) }).page()
        seen += page.entries.map(\.key)
        text = page.next?.text
        store = try await trial.reopen(store)
      } while text != nil && seen.count < 100
      try expect("the keys of all pages", seen, equals: ["a", "b", "c", "d", "e"])
    }
    add(220, "", "pageCount is the number of pages", in: .pages, checks: .scans) { trial in
      let store = try await trial.open(withKeys: ScanBounds.keys)
      for (size, expected) in [(1, 20), (2, 10), (3, 7), (19, 2), (20, 1), (21, 1), (.max, 1)] {
        try await expect("the number of pages of size \(size)", store.pages(size: size).pageCount, equals: expected)
      }
      try await expect("the number of pages of the default size", store.pages().pageCount, equals: 1)
      try await expect("the number of pages of a range", store.pages(of: "50"..., size: 4).pageCount, equals: 3)
      try await expect("the number of pages of an empty range", store.pages(of: "a"..., size: 4).pageCount, equals: 0)
    }
    add(221, "", "a page size below 1 is refused", in: .pages, checks: .badInput) { trial in
      let store = try await trial.open(withKeys: ["a"])
      for size in [0, -1, .min] {
        try await expect("page", throws: .invalidArgument) { try await store.pages(size: size).page() }
        try await expect("pageCount", throws: .invalidArgument) { try await store.pages(size: size).pageCount }
        try await expect("sequence of pages", throws: .invalidArgument) {
          for try await _ in store.pages(size: size) {}
        }
      }
      try await expect("a page of size 1", store.pages(size: 1).page().entries.map(\.key), equals: ["a"])
    }
    add(222, "", "pages in descending order contain the same entries as in ascending order", in: .pages, checks: .scans)
    { trial in
      let store = try await trial.open(withKeys: ScanBounds.keys)
      for range: KeyRange in [.all, "20"..<"81", "21"..., ..<"50"] {
        let expected = ScanModel(ScanBounds.keys).keys(in: range, order: .descending)
        for size in [1, 2, 3, 20] {
          let pages = try await read(store.pages(of: range, size: size, order: .descending))
          try expect(
            "the keys of pages of size \(size) over \(range)", pages.flatMap(\.entries).map(\.key), equals: expected)
        }
      }
    }
    add(223, "", "a cursor of the other order is refused", in: .pages, checks: .badInput) { trial in
      let store = try await trial.open(withKeys: ["a", "b", "c"])
      let next = try await store.pages(size: 1, order: .descending).page().next
      try await expect("a page after a cursor of the other order", throws: .invalidArgument) {
        try await store.pages(size: 1).starting(after: next).page()
      }
      let page = try await store.pages(size: 1, order: .descending).starting(after: next).page()
      try expect("a page in the cursor's own order", page.entries.map(\.key), equals: ["b"])
    }
    add(224, "", "pages after any cursor stay within their range", in: .pages, checks: .scans) { trial in
      let store = try await trial.open(withKeys: ScanBounds.keys)
      for order in ScanOrder.allCases {
        for place in ScanBounds.places where !place.isEmpty {
          let page = try await store.pages(of: "20"..<"60", size: 99, order: order).page(
            after: PageCursor(after: place, order: order))
          let expected = ScanModel(ScanBounds.keys).keys(in: "20"..<"60", order: order)
            .filter { order == .ascending ? $0 > place : $0 < place }
          try expect("the page after \(place), \(order)", page.entries.map(\.key), equals: expected)
        }
      }
    }
  }
}

/// Reads all pages by passing on each cursor, up to a number of pages that no case reaches.
private func read(_ pages: StorePages<SampleValue?>) async throws -> [StorePage<SampleValue?>] {
  var all: [StorePage<SampleValue?>] = []
  var page = try await pages.page()
  if !page.entries.isEmpty { all.append(page) }
  while let cursor = page.next, all.count < 1_000 {
    page = try await pages.page(after: cursor)
    all.append(page)
  }
  return all
}

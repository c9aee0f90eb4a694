import Larder

extension CaseList {
  mutating func addPageCases() {
    begin(.pages, checking: .scans)
    add("104", "pages of every size are complete, and only the last has no next cursor") { trial in
      let all: [StoreKey] = ["a", "b", "c", "d", "e", "f"]
      for count in [0, 1, 3, 6] {
        let keys = Array(all.prefix(count))
        let store = try await trial.openElsewhere(withKeys: keys)
        for size in [1, 2, 3, 4, 6, 7, .max] {
          let what = "pages of size \(size) over \(count) entries"
          let pages = try await read(store.pages(size: size))
          let lengths = stride(from: 0, to: count, by: min(size, 100)).map { min(size, count - $0) }
          try expect("the lengths of \(what)", pages.map(\.entries.count), equals: lengths)
          try expect("the keys of \(what)", pages.flatMap(\.keys), equals: keys)
          try expect(
            "which \(what) have a next cursor", pages.map { $0.next != nil },
            equals: lengths.indices.map { $0 < lengths.count - 1 })
          try await expect("the sequence of \(what)", collect(store.pages(size: size)), equals: pages)
        }
      }
    }
    add("105a", "insertions before the cursor do not repeat or shift entries", keys: ["b", "d", "f", "h"]) { store, _ in
      let pages = store.pages(size: 2)
      let first = try await pages.page()
      try expect("the first page", first.keys, equals: ["b", "d"])
      try await store.apply([.set("a", nil), .set("c", nil), .set("e", nil)])
      let second = try await pages.starting(after: first.next).page()
      try expect("the second page", second.keys, equals: ["e", "f"])
      let third = try await pages.starting(after: second.next).page()
      try expect("the third page", third.keys, equals: ["h"])
      try expect("the cursor of the last page", third.next, equals: nil)
    }
    add("105b", "removals before the cursor do not skip entries", keys: ["a", "b", "c", "d", "e"]) { store, _ in
      let pages = store.pages(size: 2)
      let first = try await pages.page()
      try await store.apply([.remove("a"), .remove("b")])
      let second = try await pages.starting(after: first.next).page()
      try expect("the second page, after the cursor's key was removed", second.keys, equals: ["c", "d"])
      try await store.apply([.removeAll("d"...)])
      let third = try await pages.starting(after: second.next).page()
      try expect("the keys of the page after all entries", third.keys, equals: [])
      try expect("the cursor of the last page", third.next, equals: nil)
    }
    add(
      "105c", "an entry that exists throughout is on exactly one page while other entries change"
    ) { trial in
      var generator = trial.makeGenerator()
      let fixed = (0..<40).map { StoreKey("k\(100 + $0 * 2)") }
      for order in ScanOrder.allCases {
        let store = try await trial.openElsewhere(withKeys: fixed)
        let changes = (0..<200).map { _ -> BatchChange<SampleValue?> in
          let key = StoreKey("k\(100 + Int.random(in: 0..<40, using: &generator) * 2 + 1)")
          return Bool.random(using: &generator) ? .set(key, nil) : .remove(key)
        }
        var rest = changes[...]
        let seen = try await keys(in: store.pages(size: 3, order: order)) {
          for change in rest.prefix(4) { try await store.apply([change]) }
          rest = rest.dropFirst(4)
        }
        try expect(
          "the keys that existed throughout, \(order)", seen.filter(fixed.contains), equals: order.applied(to: fixed))
        try expect("the number of repeated keys", seen.count - Set(seen).count, equals: 0)
      }
    }
    add(
      "107", "a page starts after the cursor's key, which need not exist", keys: ["a", "b", "b\0", "c"]
    ) { store, _ in
      let pages = store.pages(size: 9)
      let expectations: [(StoreKey, [StoreKey])] = [
        ("b", ["b\0", "c"]), ("b\0", ["c"]), ("az", ["b", "b\0", "c"]), ("c", []), ("z", []),
      ]
      for (key, expected) in expectations {
        let cursor = PageCursor(after: key)
        try await expect("the page after \(key)", pages.page(after: cursor).keys, equals: expected)
        try await expect(
          "all pages after \(key)", read(pages.starting(after: cursor)).flatMap(\.keys), equals: expected)
      }
    }
    add("218", "a cursor round-trips through text", keys: UnusualKeys.all) { store, _ in
      for order in ScanOrder.allCases {
        try await expect(
          "the keys of all pages, \(order)", keys(in: store.pages(size: 5, order: order)),
          equals: ScanModel(UnusualKeys.all).keys(in: .all, order: order))
      }
      for text in ["", "1a.", "2a.YQ", "YQ", "1a.!", "1x.YQ"] {
        try await expect("a cursor from the text \(text)", throws: .invalidArgument) { try PageCursor(text) }
      }
    }
    add("219", "a cursor stays valid when the store is reopened", needs: .persistence) { trial in
      var store = try await trial.open(with: Entries(keys: ["a", "b", "c", "d", "e"]))
      var seen: [StoreKey] = []
      var text: String?
      repeat {
        let page = try await store.pages(size: 2).starting(after: text.map { try PageCursor($0) }).page()
        seen += page.keys
        text = page.next?.text
        store = try await trial.reopen(store)
      } while text != nil && seen.count < 100
      try expect("the keys of all pages", seen, equals: ["a", "b", "c", "d", "e"])
    }
    add("220", "pageCount is the number of pages", keys: ScanBounds.keys) { store, _ in
      for (size, expected) in [(1, 20), (2, 10), (3, 7), (19, 2), (20, 1), (21, 1), (.max, 1)] {
        try await expect("the number of pages of size \(size)", store.pages(size: size).pageCount, equals: expected)
      }
      try await expect("the number of pages of the default size", store.pages().pageCount, equals: 1)
      try await expect("the number of pages of a range", store.pages(of: "50"..., size: 4).pageCount, equals: 3)
      try await expect("the number of pages of an empty range", store.pages(of: "a"..., size: 4).pageCount, equals: 0)
    }
    add("221", "a page size below 1 is refused", keys: ["a"], checks: .badInput) { store, _ in
      for size in [0, -1, .min] {
        let pages = store.pages(size: size)
        try await expect("page", throws: .invalidArgument) { try await pages.page() }
        try await expect("pageCount", throws: .invalidArgument) { try await pages.pageCount }
        try await expect("sequence of pages", throws: .invalidArgument) { for try await _ in pages {} }
      }
      try await expect("a page of size 1", store.pages(size: 1).page().keys, equals: ["a"])
    }
    add(
      "222", "pages in descending order contain the same entries as in ascending order", keys: ScanBounds.keys
    ) { store, _ in
      for range: KeyRange in [.all, "20"..<"81", "21"..., ..<"50"] {
        for size in [1, 2, 3, 20] {
          try await expect(
            "the keys of pages of size \(size) over \(range)",
            read(store.pages(of: range, size: size, order: .descending)).flatMap(\.keys),
            equals: ScanBounds.model.keys(in: range, order: .descending))
        }
      }
    }
    add("223", "a cursor of the other order is refused", keys: ["a", "b", "c"], checks: .badInput) { store, _ in
      let descending = store.pages(size: 1, order: .descending)
      let next = try await descending.page().next
      try await expect("a page after a cursor of the other order", throws: .invalidArgument) {
        try await store.pages(size: 1).starting(after: next).page()
      }
      try await expect(
        "a page in the cursor's own order", descending.starting(after: next).page().keys, equals: ["b"])
    }
    add("224", "pages after any cursor stay within their range", keys: ScanBounds.keys) { store, _ in
      for order in ScanOrder.allCases {
        let pages = store.pages(of: "20"..<"60", size: 99, order: order)
        for place in ScanBounds.places where !place.isEmpty {
          let expected = ScanBounds.model.keys(in: "20"..<"60", order: order)
            .filter { order == .ascending ? $0 > place : $0 < place }
          try await expect(
            "the page after \(place), \(order)", pages.page(after: PageCursor(after: place, order: order)).keys,
            equals: expected)
        }
      }
    }
  }
}

extension StorePage {
  fileprivate var keys: [StoreKey] { entries.map(\.key) }
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

/// Returns the keys of all pages, read by passing on the text of each cursor.
///
/// - Parameters:
///   - pages: The pages.
///   - change: A closure that runs after each page. Defaults to a no-op.
private func keys(
  in pages: StorePages<SampleValue?>, _ change: () async throws -> Void = {}
) async throws -> [StoreKey] {
  var seen: [StoreKey] = []
  var text: String?
  repeat {
    let page = try await pages.starting(after: text.map { try PageCursor($0) }).page()
    seen += page.keys
    text = page.next?.text
    try await change()
  } while text != nil && seen.count < 1_000
  return seen
}

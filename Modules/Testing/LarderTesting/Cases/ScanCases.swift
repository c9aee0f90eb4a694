import Larder

extension CaseList {
  mutating func addScanCases() {
    begin(.scans, checking: .scans)
    addOrderCases()
    addBoundCases()
    addLimitCases()
    addSequenceCases()
    add("102", "a prefix range excludes neighboring keys, for every last byte", keys: StoreKey.prefixes) { store, _ in
      let sorted = ScanModel(StoreKey.prefixes).keys(in: .all).map { (key: $0, bytes: $0.bytes) }
      for byte in 0...UInt8.max {
        for prefix in [[byte], [0xFF, byte]] {
          let expected = sorted.filter { $0.bytes.starts(with: prefix) }.map(\.key)
          let range = KeyRange.prefix(StoreKey(bytes: prefix))
          try await expect("the keys in \(range)", store.keys(in: range, limit: .max), equals: expected)
          try await expect("the count of \(range)", store.count(in: range), equals: expected.count)
        }
      }
    }
    let inside = [
      StoreKey(components: "a", 1), StoreKey(components: "a", 2, "x"), StoreKey(components: "a"),
      StoreKey(components: "a", "b"),
    ]
    let outside: [StoreKey] = [
      StoreKey(components: "ab"), StoreKey(components: "a\0b"), StoreKey(components: "b"), "a",
    ]
    add("103", "a range of key components excludes neighboring keys", keys: inside + outside) { store, _ in
      try await expect(
        "the keys whose first component is \"a\"", store.keys(in: .prefix(components: "a"), limit: .max),
        equals: ScanModel(inside).keys(in: .all))
    }
    add("216", "scans of random keys with random ranges and limits are correct") { trial in
      var generator = trial.makeGenerator()
      func key(longest: Int) -> StoreKey {
        StoreKey(
          bytes: (0..<Int.random(in: 1...longest, using: &generator)).map { _ in
            [0, 1, 0x61, 0x7F, 0x80, 0xFF].randomElement(using: &generator) ?? 0
          })
      }
      let keys = (0..<150).map { _ in key(longest: 4) } + (0..<20).map { _ in key(longest: 40) }
      let store = try await trial.open(with: Entries(keys: keys))
      let model = ScanModel(keys)
      for _ in 0..<80 {
        let range = KeyRange(from: key(longest: 4), upTo: Bool.random(using: &generator) ? key(longest: 4) : nil)
        try await expect(
          store, scans: range, limit: [1, 3, 50, .max].randomElement(using: &generator) ?? 1, like: model)
      }
    }
    add("217", "a scan reflects all earlier writes", keys: ["a", "b", "c"]) { store, _ in
      try await expect("the initial count", store.count(), equals: 3)
      try await store.setValue("new", forKey: "b")
      try await expect(
        "the entries after setting a key", store.entries(in: "b"..., limit: 1),
        equals: [StoreEntry(key: "b", value: "new")])
      try await store.removeValue(forKey: "b")
      try await expect("the keys after removing a key", store.keys(in: .all, limit: 9), equals: ["a", "c"])
      try await store.setValue(nil, forKey: "bb")
      try await expect(
        "the keys after adding a key", store.keys(in: .all, limit: 9, order: .descending), equals: ["c", "bb", "a"])
      try await expect("the count at the end", store.count(), equals: 3)
    }
    let many = (0...10_000).map { StoreKey(integer: $0) }
    add("249", "scans, reads and updates of more than 10,000 entries are complete") { trial in
      // More than 999, 1,000, 1,024, 4,096, 8,192 and 10,000. The values are minimal because only their number matters.
      let store = try await trial.open()
      try await store.apply(ChangeBatch(many.map { .set($0, nil) }))
      try await expect("the count", store.count(), equals: many.count)
      try await expect("the keys", store.keys(in: .all, limit: .max), equals: many)
      try await expect(
        "the keys, descending", store.keys(in: .all, limit: .max, order: .descending), equals: many.reversed())
      try await expect("the keys of all entries", store.entries(in: .all, limit: .max).map(\.key), equals: many)
      try await expect("the slots", store.values(forKeys: many), equals: many.map { _ in .some(nil) })
      try await store.update(many) { slots in
        slots.assign([.some(nil)] + Array(repeating: nil, count: slots.count - 1))
      }
      try await expect(
        "the keys after an update that removes all but the first", store.keys(in: .all, limit: .max),
        equals: Array(many.prefix(1)))
    }
  }

  private mutating func addOrderCases() {
    add("82", "scans are in byte order, regardless of the order of writes") { trial in
      let keys: [StoreKey] = ["\t", "12", "2", "a", "a🐄", "b", "Z", "é", "ü", "🐄", "aa", "a\0", "10"]
      var generator = trial.makeGenerator()
      let store = try await trial.open()
      for key in keys.shuffled(using: &generator) {
        try await store.setValue(SampleValue(key: key), forKey: key)
      }
      try await expect(store, scans: .all, like: ScanModel(keys))
      try await expect(trial.settled(store), scans: .all, like: ScanModel(keys))
    }
    let bytes: [[UInt8]] = [[1], [2], [11], [127], [128], [255], [1, 0], [1, 255], [255, 0], [255, 255]]
    let keys = bytes.map { StoreKey(bytes: $0) }
    add("83", "bytes are compared as unsigned numbers, and a prefix comes first", keys: keys) { store, _ in
      try await expect(store, scans: .all, like: ScanModel(keys))
      try await expect("the first key", store.keys(in: .all, limit: 1), equals: [keys[0]])
      try await expect("the last key", store.keys(in: .all, limit: 1, order: .descending), equals: [keys[9]])
    }
    let integers: [Int64] = [.min, -1_000, -256, -255, -1, 0, 1, 255, 256, 1_000, .max]
    add("83a", "integer keys are in numeric order", keys: integers.map { StoreKey(integer: $0) }) { store, _ in
      try await expect("the keys", store.keys(in: .all, limit: .max).map(\.integer), equals: integers)
    }
    add("84", "all ways to scan agree", keys: ScanBounds.keys + UnusualKeys.all) { store, _ in
      let model = ScanModel(ScanBounds.keys + UnusualKeys.all)
      for range: KeyRange in [.all, "20"..<"60", .prefix("a"), "zzzz"...] {
        try await expect(store, scans: range, like: model)
        for order in ScanOrder.allCases {
          let keys = model.keys(in: range, order: order)
          let what = "in \(range), \(order)"
          try await expect("sequence of keys \(what)", collect(store.keys(in: range, order: order)), equals: keys)
          try await expect(
            "sequence of entries \(what)", collect(store.entries(in: range, order: order)),
            equals: keys.map { StoreEntry(key: $0, value: SampleValue(key: $0)) })
        }
      }
    }
  }

  private mutating func addBoundCases() {
    /// Adds a case that scans the twenty keys with several ranges.
    func addScans(_ id: String, _ name: String, _ ranges: [KeyRange], to list: inout CaseList) {
      list.add(id, name, keys: ScanBounds.keys) { store, _ in
        for range in ranges { try await expect(store, scans: range, like: ScanBounds.model) }
      }
    }
    let places = ScanBounds.places
    addScans("85a", "scans with every lower bound are correct", places.map { $0... }, to: &self)
    addScans(
      "85b", "scans with every upper bound, excluded and included, are correct",
      places.map { ..<$0 } + places.map { ...$0 }, to: &self)
    addScans("85c", "scans with every pair of bounds are correct", ScanBounds.ranges, to: &self)
    add("87", "a range whose lower bound is above its upper bound is empty", keys: ScanBounds.keys) { store, _ in
      for range: KeyRange in ["50"..<"20", "50"..<"50", "95"..."00", "zz"..<""] {
        try await expect(store, scans: range, like: ScanModel([]))
      }
      try await expect(store, scans: "50"..."50", like: ScanModel(["50"]))
    }
    add("101", "scans of an empty store return no entries", keys: []) { store, _ in
      for range in [.all, "a"..., ..<"a", .prefix("a"), "a"..<"b"] {
        try await expect(store, scans: range, like: ScanModel([]))
      }
      try await expect("the sequence of entries of an empty store", collect(store.entries()), equals: [])
      try await store.setValue(SampleValue(key: "a"), forKey: "a")
      try await expect(store, scans: .all, like: ScanModel(["a"]))
    }
  }

  private mutating func addLimitCases() {
    let tables: [(id: String, name: String, limits: [Int])] = [
      ("89a", "limit 0 returns no entries", [0]),
      ("89b", "a limit returns that number of entries from the beginning", [1, 2, 10, 19]),
      ("89c", "a limit at or above the number of entries returns all of them", [20, 21, 1_000, .max - 1, .max]),
    ]
    for (id, name, limits) in tables {
      add(id, name, keys: ScanBounds.keys) { store, _ in
        try await expect("the count", store.count(), equals: ScanBounds.keys.count)
        for limit in limits {
          for range: KeyRange in [.all, "20"..., ..<"60", "21"..<"59", "50"..."50", "99"...] {
            try await expect(store, scans: range, limit: limit, like: ScanBounds.model)
          }
        }
      }
    }
    add("89d", "a negative limit is refused", keys: ["a"], checks: .badInput) { store, _ in
      for limit in [-1, -2, .min] {
        for order in ScanOrder.allCases {
          try await expect("keys, limit \(limit)", throws: .invalidArgument) {
            try await store.keys(in: .all, limit: limit, order: order)
          }
          for range: KeyRange in [.all, "b"..<"a"] {
            try await expect("entries in \(range), limit \(limit)", throws: .invalidArgument) {
              try await store.entries(in: range, limit: limit, order: order)
            }
          }
        }
      }
    }
  }

  private mutating func addSequenceCases() {
    add("91", "a sequence that has ended returns no more entries", keys: ["a"]) { store, _ in
      var entries = store.entries().makeAsyncIterator()
      var pages = store.pages().makeAsyncIterator()
      try await expect("the first entry", entries.next()?.key, equals: "a")
      try await expect("the first page", pages.next()?.entries.map(\.key), equals: ["a"])
      for _ in 0..<3 {
        try await expect("the entry after the last", entries.next()?.key, equals: nil)
        try await expect("the page after the last", pages.next()?.entries.count, equals: nil)
      }
    }
    let keys = (0..<300).map { StoreKey(integer: $0) }
    add("94", "a sequence can be abandoned and started again", keys: keys) { store, _ in
      let walk = store.keys()
      for try await key in walk {
        try expect("the first key", key, equals: keys[0])
        break
      }
      try await expect("all keys", collect(walk), equals: keys)
      try await store.close()
    }
    add("95", "a sequence in a cancelled task throws CancellationError", keys: ["a"], checks: .cancellation) {
      store, _ in
      try await expectCancellation(of: "entries") {
        try await inCancelledTask { _ = try await collect(store.entries()) }
      }
      try await expectCancellation(of: "keys") { try await inCancelledTask { _ = try await collect(store.keys()) } }
      try await expectCancellation(of: "pages") { try await inCancelledTask { _ = try await collect(store.pages()) } }
      try await expect("the keys in a task that was not cancelled", store.keys(in: .all, limit: 9), equals: ["a"])
    }
    let fixed = (0..<600).map { StoreKey("k\(1_000 + $0 * 10)") }
    add("100", "a sequence over entries that change repeats and skips no entry", keys: fixed) { store, _ in
      for order in ScanOrder.allCases {
        var seen: [StoreKey] = []
        for try await entry in store.entries(order: order) {
          if seen.count % 40 == 0 {
            // Changes keys before, at and after the current position.
            let near = Int((entry.key.string ?? "").dropFirst()) ?? 0
            try await store.apply([
              .set(StoreKey("k\(near - 5)"), nil), .set(StoreKey("k\(near + 5)"), nil), .set("a", nil), .set("z", nil),
              .set(entry.key, entry.value),
            ])
            try await store.apply([.remove("a"), .remove(StoreKey("k\(near - 5)"))])
          }
          seen.append(entry.key)
        }
        try expect("the keys of the sequence, \(order)", seen, equals: order.applied(to: Set(seen).sorted()))
        try expect(
          "the number of skipped keys that existed throughout, \(order)", Set(fixed).subtracting(seen).count, equals: 0)
      }
    }
    add("106", "sequences of lengths around the size of a page are complete", keys: []) { store, _ in
      var written: Int64 = 0
      for count: Int64 in [1, 255, 256, 257, 512, 513] {
        try await store.apply(
          ChangeBatch((written..<count).map { .set(StoreKey(integer: $0), SampleValue(integer: $0)) }))
        written = count
        for order in ScanOrder.allCases {
          try await expect(
            "the sequence of \(count) entries, \(order)",
            collect(store.entries(order: order)).map { $0.value?.integer },
            equals: order.applied(to: (0..<count).map { $0 }))
        }
      }
    }
  }
}

extension StoreKey {
  /// Keys of one to three bytes around every prefix of one or two bytes.
  fileprivate static let prefixes = Array(
    Set(
      (0...UInt8.max).flatMap { byte in
        [[byte], [byte, 0], [byte, 0xFF], [0xFF, byte], [0xFF, 0xFF, byte]].map { StoreKey(bytes: $0) }
      }))
}

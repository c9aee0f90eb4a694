import Larder

extension CaseList {
  mutating func addScanCases() {
    add(82, "", "scans are in byte order, regardless of the order of writes", in: .scans, checks: .scans) { trial in
      let keys: [StoreKey] = ["\t", "12", "2", "a", "a🐄", "b", "Z", "é", "ü", "🐄", "aa", "a\0", "10"]
      var generator = trial.makeGenerator()
      var store = try await trial.open()
      for key in keys.shuffled(using: &generator) {
        try await store.setValue(SampleValue(key: key), forKey: key)
      }
      try await expect(store, scans: .all, like: ScanModel(keys))
      store = try await trial.settled(store)
      try await expect(store, scans: .all, like: ScanModel(keys))
    }
    add(83, "", "bytes are compared as unsigned numbers, and a prefix comes first", in: .scans, checks: .scans) {
      trial in
      let keys = [[1], [2], [11], [127], [128], [255], [1, 0], [1, 255], [255, 0], [255, 255]].map {
        StoreKey(bytes: $0)
      }
      let store = try await trial.open(withKeys: keys.reversed())
      try await expect(store, scans: .all, like: ScanModel(keys))
      try await expect("the first key", store.keys(in: .all, limit: 1), equals: [StoreKey(bytes: [1])])
      try await expect(
        "the last key", store.keys(in: .all, limit: 1, order: .descending), equals: [StoreKey(bytes: [255, 255])])
    }
    add(83, "a", "integer keys are in numeric order", in: .scans, checks: .scans) { trial in
      let integers: [Int64] = [.min, -1_000, -256, -255, -1, 0, 1, 255, 256, 1_000, .max]
      let store = try await trial.open(withKeys: integers.reversed().map { StoreKey(integer: $0) })
      try await expect("the keys", store.keys(in: .all, limit: .max).map(\.integer), equals: integers)
    }
    add(84, "", "all ways to scan agree", in: .scans, checks: .scans) { trial in
      let store = try await trial.open(withKeys: ScanBounds.keys + UnusualKeys.all)
      for range: KeyRange in [.all, "20"..<"60", .prefix("a"), "zzzz"...] {
        for order in ScanOrder.allCases {
          let keys = try await store.keys(in: range, limit: .max, order: order)
          let what = "in \(range), \(order)"
          let entries = try await store.entries(in: range, limit: .max, order: order)
          try expect(
            "keys \(what)", keys, equals: ScanModel(ScanBounds.keys + UnusualKeys.all).keys(in: range, order: order))
          try expect("entries \(what)", entries.map(\.key), equals: keys)
          try expect("values of entries \(what)", entries.map(\.value), equals: keys.map { SampleValue(key: $0) })
          try await expect("count of \(range)", store.count(in: range), equals: keys.count)
          try await expect(
            "sequence of keys \(what)", store.keys(in: range, order: order).reduce(into: []) { $0.append($1) },
            equals: keys)
          try await expect(
            "sequence of entries \(what)",
            store.entries(in: range, order: order).reduce(into: []) { $0.append($1) }, equals: entries)
        }
      }
    }
    add(85, "a", "scans with every lower bound are correct", in: .scans, checks: .scans) { trial in
      let store = try await trial.open(withKeys: ScanBounds.keys)
      for place in ScanBounds.places {
        try await expect(store, scans: place..., like: ScanModel(ScanBounds.keys))
      }
    }
    add(85, "b", "scans with every upper bound, excluded and included, are correct", in: .scans, checks: .scans) {
      trial in
      let store = try await trial.open(withKeys: ScanBounds.keys)
      for place in ScanBounds.places {
        try await expect(store, scans: ..<place, like: ScanModel(ScanBounds.keys))
        try await expect(store, scans: ...place, like: ScanModel(ScanBounds.keys))
      }
    }
    add(85, "c", "scans with every pair of bounds are correct", in: .scans, checks: .scans) { trial in
      let store = try await trial.open(withKeys: ScanBounds.keys)
      for range in ScanBounds.ranges {
        try await expect(store, scans: range, like: ScanModel(ScanBounds.keys))
      }
    }
    add(87, "", "a range whose lower bound is above its upper bound is empty", in: .scans, checks: .scans) { trial in
      let store = try await trial.open(withKeys: ScanBounds.keys)
      for range: KeyRange in ["50"..<"20", "50"..<"50", "95"..."00", "zz"..<""] {
        try await expect(store, scans: range, like: ScanModel([]))
      }
      try await expect(store, scans: "50"..."50", like: ScanModel(["50"]))
    }
    addLimitCases()
    add(91, "", "a sequence that has ended returns no more entries", in: .scans, checks: .scans) { trial in
      let store = try await trial.open(withKeys: ["a"])
      var entries = store.entries().makeAsyncIterator()
      var pages = store.pages().makeAsyncIterator()
      try await expect("the first entry", entries.next()?.key, equals: "a")
      try await expect("the first page", pages.next()?.entries.map(\.key), equals: ["a"])
      for _ in 0..<3 {
        try await expect("the entry after the last", entries.next()?.key, equals: nil)
        try await expect("the page after the last", pages.next()?.entries.count, equals: nil)
      }
    }
    add(94, "", "a sequence can be abandoned and started again", in: .scans, checks: .scans) { trial in
      let keys = (0..<300).map { StoreKey(integer: $0) }
      let store = try await trial.open(withKeys: keys)
      let walk = store.keys()
      for try await key in walk {
        try expect("the first key", key, equals: keys[0])
        break
      }
      try await expect("all keys", walk.reduce(into: []) { $0.append($1) }, equals: keys)
      try await store.close()
    }
    add(95, "", "a sequence in a cancelled task throws CancellationError", in: .scans, checks: .cancellation) { trial in
      let store = try await trial.open(withKeys: ["a"])
      try await expectCancellation("sequence of entries") {
        try await inCancelledTask { for try await _ in store.entries() {} }
      }
      try await expectCancellation("sequence of keys") {
        try await inCancelledTask { for try await _ in store.keys() {} }
      }
      try await expectCancellation("sequence of pages") {
        try await inCancelledTask { for try await _ in store.pages() {} }
      }
      try await expect("the keys in a task that was not cancelled", store.keys(in: .all, limit: 9), equals: ["a"])
    }
    add(100, "", "a sequence over entries that change repeats and skips no entry", in: .scans, checks: .scans) {
      trial in
      let fixed = (0..<600).map { StoreKey("k\(1_000 + $0 * 10)") }
      let store = try await trial.open(withKeys: fixed)
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
        try expect("the number of repeated keys, \(order)", seen.count - Set(seen).count, equals: 0)
        try expect(
          "the keys in the order of the sequence, \(order)", seen,
          equals: order == .ascending ? seen.sorted() : seen.sorted(by: >))
        try expect(
          "the number of skipped keys that existed throughout, \(order)", Set(fixed).subtracting(seen).count,
          equals: 0)
      }
    }
    add(101, "", "scans of an empty store return no entries", in: .scans, checks: .scans) { trial in
      let store = try await trial.open()
      for range in [.all, "a"..., ..<"a", .prefix("a"), "a"..<"b"] {
        try await expect(store, scans: range, like: ScanModel([]))
      }
      for try await entry in store.entries() {
        try expect("the sequence of entries of an empty store", entry.key, equals: "none")
      }
      try await store.setValue(SampleValue(key: "a"), forKey: "a")
      try await expect(store, scans: .all, like: ScanModel(["a"]))
    }
    add(102, "", "a prefix range excludes neighboring keys, for every last byte", in: .scans, checks: .scans) {
      trial in
      let keys = (0...UInt8.max).flatMap { byte in
        [[byte], [byte, 0], [byte, 0xFF], [0xFF, byte], [0xFF, 0xFF, byte]].map { StoreKey(bytes: $0) }
      }
      let store = try await trial.open(withKeys: Array(Set(keys)))
      let sorted = ScanModel(keys).keys(in: .all).map { (key: $0, bytes: $0.bytes) }
      for byte in 0...UInt8.max {
        for prefix in [[byte], [0xFF, byte]] {
          let expected = sorted.filter { $0.bytes.starts(with: prefix) }.map(\.key)
          let range = KeyRange.prefix(StoreKey(bytes: prefix))
          try await expect("the keys in \(range)", store.keys(in: range, limit: .max), equals: expected)
          try await expect("the count of \(range)", store.count(in: range), equals: expected.count)
        }
      }
    }
    add(103, "", "a range of key components excludes neighboring keys", in: .scans, checks: .scans) { trial in
      let inside = [
        StoreKey(components: "a", 1), StoreKey(components: "a", 2, "x"), StoreKey(components: "a"),
        StoreKey(components: "a", "b"),
      ]
      let store = try await trial.open(
        withKeys: inside + [StoreKey(components: "ab"), StoreKey(components: "a\0b"), StoreKey(components: "b"), "a"])
      try await expect(
        "the keys whose first component is \"a\"", store.keys(in: .prefix(components: "a"), limit: .max),
        equals: ScanModel(inside).keys(in: .all))
    }
    add(106, "", "sequences of lengths around the size of a page are complete", in: .scans, checks: .scans) { trial in
      let store = try await trial.open()
      var written = 0
      for count in [1, 255, 256, 257, 512, 513] {
        try await store.apply(
          ChangeBatch((written..<count).map { .set(StoreKey(integer: $0), SampleValue(integer: Int64($0))) }))
        written = count
        for order in ScanOrder.allCases {
          let values = try await store.entries(order: order).reduce(into: [Int64?]()) { $0.append($1.value?.integer) }
          let all = (0..<Int64(count)).map { Optional($0) }
          try expect(
            "the sequence of \(count) entries, \(order)", values, equals: order == .ascending ? all : all.reversed())
        }
      }
    }
    add(216, "", "scans of random keys with random ranges and limits are correct", in: .scans, checks: .scans) {
      trial in
      var generator = trial.makeGenerator()
      func key(longest: Int) -> StoreKey {
        StoreKey(
          bytes: (0..<Int.random(in: 1...longest, using: &generator)).map { _ in
            [0, 1, 0x61, 0x7F, 0x80, 0xFF].randomElement(using: &generator) ?? 0
          })
      }
      let keys = (0..<150).map { _ in key(longest: 4) } + (0..<20).map { _ in key(longest: 40) }
      let store = try await trial.open(withKeys: keys)
      let model = ScanModel(keys)
      for _ in 0..<80 {
        let range = KeyRange(from: key(longest: 4), upTo: Bool.random(using: &generator) ? key(longest: 4) : nil)
        try await expect(
          store, scans: range, limit: [1, 3, 50, .max].randomElement(using: &generator) ?? 1, like: model)
      }
    }
    add(217, "", "a scan reflects all earlier writes", in: .scans, checks: .scans) { trial in
      let store = try await trial.open(withKeys: ["a", "b", "c"])
      try await expect("the initial count", store.count(), equals: 3)
      try await store.setValue(SampleValue("new"), forKey: "b")
      try await expect(
        "the entries after setting a key", store.entries(in: "b"..., limit: 1),
        equals: [StoreEntry(key: "b", value: .some(SampleValue("new")))])
      try await store.removeValue(forKey: "b")
      try await expect("the keys after removing a key", store.keys(in: .all, limit: 9), equals: ["a", "c"])
      try await store.setValue(nil, forKey: "bb")
      try await expect(
        "the keys after adding a key", store.keys(in: .all, limit: 9, order: .descending), equals: ["c", "bb", "a"])
      try await expect("the count at the end", store.count(), equals: 3)
    }
  }

  private mutating func addLimitCases() {
    let model = ScanModel(ScanBounds.keys)
    addLimit(89, "a", "limit 0 returns no entries", limits: [0], model)
    addLimit(89, "b", "a limit returns that number of entries from the beginning", limits: [1, 2, 10, 19], model)
    addLimit(
      89, "c", "a limit at or above the number of entries returns all of them",
      limits: [20, 21, 1_000, .max - 1, .max], model)
    add(89, "d", "a negative limit is refused", in: .scans, checks: .badInput) { trial in
      let store = try await trial.open(withKeys: ["a"])
      for limit in [-1, -2, .min] {
        for order in ScanOrder.allCases {
          try await expect("keys, limit \(limit)", throws: .invalidArgument) {
            try await store.keys(in: .all, limit: limit, order: order)
          }
          try await expect("entries, limit \(limit)", throws: .invalidArgument) {
            try await store.entries(in: .all, limit: limit, order: order)
          }
          try await expect("entries in an empty range, limit \(limit)", throws: .invalidArgument) {
            try await store.entries(in: "b"..<"a", limit: limit, order: order)
          }
        }
      }
    }
  }

  private mutating func addLimit(_ number: Int, _ variant: String, _ name: String, limits: [Int], _ model: ScanModel) {
    add(number, variant, name, in: .scans, checks: .scans) { trial in
      let store = try await trial.open(withKeys: ScanBounds.keys)
      try await expect("the count", store.count(), equals: ScanBounds.keys.count)
      for limit in limits {
        for range: KeyRange in [.all, "20"..., ..<"60", "21"..<"59", "50"..."50", "99"...] {
          try await expect(store, scans: range, limit: limit, like: model)
        }
      }
    }
  }
}

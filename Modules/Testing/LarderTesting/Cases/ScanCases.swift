import Larder

extension CaseList {
  mutating func addScanCases() {
    add(82, "", "scans are in the order of bytes, whatever the order of writing", in: .scans, checks: .scans) { trial in
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
    add(83, "", "bytes are unsigned, and a prefix comes first", in: .scans, checks: .scans) { trial in
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
    add(84, "", "every way to scan agrees", in: .scans, checks: .scans) { trial in
      let store = try await trial.open(withKeys: ScanBounds.keys + UnusualKeys.all)
      for range: KeyRange in [.all, "20"..<"60", .prefix("a"), "zzzz"...] {
        for order in ScanOrder.allCases {
          let keys = try await store.keys(in: range, limit: .max, order: order)
          let what = "in \(range), \(order)"
          let entries = try await store.entries(in: range, limit: .max, order: order)
          try expect(
            "keys \(what)", keys, equals: ScanModel(ScanBounds.keys + UnusualKeys.all).keys(in: range, order: order))
          try expect("entries \(what)", entries.map(\.key), equals: keys)
          try expect("their values \(what)", entries.map(\.value), equals: keys.map { SampleValue(key: $0) })
          try await expect("count of \(range)", store.count(in: range), equals: keys.count)
          try await expect(
            "keys one after another \(what)", store.keys(in: range, order: order).reduce(into: []) { $0.append($1) },
            equals: keys)
          try await expect(
            "entries one after another \(what)",
            store.entries(in: range, order: order).reduce(into: []) { $0.append($1) }, equals: entries)
        }
      }
    }
    add(85, "a", "every lower bound", in: .scans, checks: .scans) { trial in
      let store = try await trial.open(withKeys: ScanBounds.keys)
      for place in ScanBounds.places {
        try await expect(store, scans: place..., like: ScanModel(ScanBounds.keys))
      }
    }
    add(85, "b", "every upper bound, left out and included", in: .scans, checks: .scans) { trial in
      let store = try await trial.open(withKeys: ScanBounds.keys)
      for place in ScanBounds.places {
        try await expect(store, scans: ..<place, like: ScanModel(ScanBounds.keys))
        try await expect(store, scans: ...place, like: ScanModel(ScanBounds.keys))
      }
    }
    add(85, "c", "every pair of bounds", in: .scans, checks: .scans) { trial in
      let store = try await trial.open(withKeys: ScanBounds.keys)
      for range in ScanBounds.ranges {
        try await expect(store, scans: range, like: ScanModel(ScanBounds.keys))
      }
    }
    add(87, "", "a lower bound above the upper one makes an empty range", in: .scans, checks: .scans) { trial in
      let store = try await trial.open(withKeys: ScanBounds.keys)
      for range: KeyRange in ["50"..<"20", "50"..<"50", "95"..."00", "zz"..<""] {
        try await expect(store, scans: range, like: ScanModel([]))
      }
      try await expect(store, scans: "50"..."50", like: ScanModel(["50"]))
    }
    addLimitCases()
    add(91, "", "behind its end a walk stays at its end", in: .scans, checks: .scans) { trial in
      let store = try await trial.open(withKeys: ["a"])
      var entries = store.entries().makeAsyncIterator()
      var pages = store.pages().makeAsyncIterator()
      try await expect("the first entry", entries.next()?.key, equals: "a")
      try await expect("the first page", pages.next()?.entries.map(\.key), equals: ["a"])
      for _ in 0..<3 {
        try await expect("the entry behind the last", entries.next()?.key, equals: nil)
        try await expect("the page behind the last", pages.next()?.entries.count, equals: nil)
      }
    }
    add(94, "", "a walk can be broken off, and begun again", in: .scans, checks: .scans) { trial in
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
    add(95, "", "a walk in a cancelled task stops with CancellationError", in: .scans, checks: .cancellation) { trial in
      let store = try await trial.open(withKeys: ["a"])
      try await expectCancellation("entries one after another") {
        try await inCancelledTask { for try await _ in store.entries() {} }
      }
      try await expectCancellation("keys one after another") {
        try await inCancelledTask { for try await _ in store.keys() {} }
      }
      try await expectCancellation("pages one after another") {
        try await inCancelledTask { for try await _ in store.pages() {} }
      }
      try await expect("the keys in a task that goes on", store.keys(in: .all, limit: 9), equals: ["a"])
    }
    add(100, "", "a walk over what is being written repeats and breaks nothing", in: .scans, checks: .scans) { trial in
      let fixed = (0..<600).map { StoreKey("k\(1_000 + $0 * 10)") }
      let store = try await trial.open(withKeys: fixed)
      for order in ScanOrder.allCases {
        var seen: [StoreKey] = []
        for try await entry in store.entries(order: order) {
          if seen.count % 40 == 0 {
            // Before, at and behind where the walk stands, keys that come and go.
            let near = Int((entry.key.string ?? "").dropFirst()) ?? 0
            try await store.apply([
              .set(StoreKey("k\(near - 5)"), nil), .set(StoreKey("k\(near + 5)"), nil), .set("a", nil), .set("z", nil),
              .set(entry.key, entry.value),
            ])
            try await store.apply([.remove("a"), .remove(StoreKey("k\(near - 5)"))])
          }
          seen.append(entry.key)
        }
        try expect("how often a key was repeated, \(order)", seen.count - Set(seen).count, equals: 0)
        try expect(
          "whether the keys came in order, \(order)", seen,
          equals: order == .ascending ? seen.sorted() : seen.sorted(by: >))
        try expect(
          "how many of the keys that were always there were missed, \(order)", Set(fixed).subtracting(seen).count,
          equals: 0)
      }
    }
    add(101, "", "an empty store has nothing to scan", in: .scans, checks: .scans) { trial in
      let store = try await trial.open()
      for range in [.all, "a"..., ..<"a", .prefix("a"), "a"..<"b"] {
        try await expect(store, scans: range, like: ScanModel([]))
      }
      for try await entry in store.entries() {
        try expect("the entries one after another", entry.key, equals: "none")
      }
      try await store.setValue(SampleValue(key: "a"), forKey: "a")
      try await expect(store, scans: .all, like: ScanModel(["a"]))
    }
    add(102, "", "a prefix never lets its neighbours in, whichever byte it ends with", in: .scans, checks: .scans) {
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
    add(103, "", "a prefix of components never lets its neighbours in", in: .scans, checks: .scans) { trial in
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
    add(106, "", "walks of every length around the size of a slice are complete", in: .scans, checks: .scans) { trial in
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
            "the walk over \(count) entries, \(order)", values, equals: order == .ascending ? all : all.reversed())
        }
      }
    }
    add(216, "", "random ranges and limits of random keys", in: .scans, checks: .scans) { trial in
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
    add(217, "", "a scan shows the latest of every write", in: .scans, checks: .scans) { trial in
      let store = try await trial.open(withKeys: ["a", "b", "c"])
      try await expect("the count at first", store.count(), equals: 3)
      try await store.setValue(SampleValue("new"), forKey: "b")
      try await expect(
        "the entries after setting one", store.entries(in: "b"..., limit: 1),
        equals: [StoreEntry(key: "b", value: .some(SampleValue("new")))])
      try await store.removeValue(forKey: "b")
      try await expect("the keys after removing it", store.keys(in: .all, limit: 9), equals: ["a", "c"])
      try await store.setValue(nil, forKey: "bb")
      try await expect(
        "the keys after adding one", store.keys(in: .all, limit: 9, order: .descending), equals: ["c", "bb", "a"])
      try await expect("the count at the end", store.count(), equals: 3)
    }
  }

  private mutating func addLimitCases() {
    let model = ScanModel(ScanBounds.keys)
    addLimit(89, "a", "limit 0 gives nothing", limits: [0], model)
    addLimit(89, "b", "a limit gives so many from the beginning", limits: [1, 2, 10, 19], model)
    addLimit(
      89, "c", "a limit at or above the number of entries gives all", limits: [20, 21, 1_000, .max - 1, .max], model)
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

import Foundation
import Larder

extension CaseList {
  mutating func addValueCases() {
    begin(.values, checking: .values)
    addRoundTrips()
    addAliasingCases()
    addSizeCases()
    add(
      "50", "a value that cannot be encoded is refused, and the previous value is kept", keys: ["a", "b"],
      checks: .badInput, needs: [.encoding, .immediateRefusal]
    ) { store, trial in
      for key: StoreKey in ["a", "new"] {
        let call = StoreCall<Store>("setValue", .apply) { try await $0.setValue(.unencodable(), forKey: key) }
        try await expect(store, refuses: [call], with: .encodingFailed, key: key)
      }
      try await expect(store, keeps: Entries(keys: ["a", "b"]), in: trial)
    }
    add("201", "the store lacks exactly the capabilities that the suite states", keys: ["k"]) { store, trial in
      let durability = store.information.durability
      try expect(
        "whether the suite is made with `lacking: .persistence`; the durability of the store is \(durability)",
        trial.lacks(.persistence), equals: durability == .volatile)
      if durability != .volatile {
        try expect(
          "whether the suite is made with `lacking: .acknowledgedPersistence`; the durability of the store is \(durability)",
          trial.lacks(.acknowledgedPersistence), equals: durability == .accepted)
      }
      if trial.lacks(.readOnlyAccess), trial.isPersistent {
        let elsewhere = try trial.anotherLocation()
        try await trial.open(at: elsewhere).close()
        let reader = try await trial.openUnlessRefused(at: elsewhere, for: .readOnly)
        try expect(
          "whether a store of a suite with `lacking: .readOnlyAccess` reports read-only access",
          reader?.information.access == .readOnly, equals: false)
      }
      if trial.lacks(.encoding) {
        try await store.setValue(.unencodable(), forKey: "k")
        try await expect(
          "a value that cannot be encoded, in a store of a suite with `lacking: .encoding`",
          store.value(forKey: "k"), equals: .unencodable())
      }
      try expect(
        "whether the suite is made with `lacking: .observation`", trial.lacks(.observation),
        equals: AnyDataStore(store).observation == nil)
      try await expect("whether it contains the key that was set", store.contains("k"), equals: true)
    }
  }

  /// Adds a case in which a store returns each of several values, for every way of reading.
  private mutating func addRoundTrip(
    _ id: String, _ content: String,
    _ makeValues: @escaping @Sendable (inout SeededGenerator) -> [SampleValue]
  ) {
    add(id, "\(content) round-trip") { trial in
      var generator = trial.makeGenerator()
      let values = makeValues(&generator)
      let entries = values.indices.map { (StoreKey(integer: $0), SampleValue?.some(values[$0])) }
      let store = try await trial.open(with: Dictionary(uniqueKeysWithValues: entries))
      for (key, value) in entries { try await expect("the value", store.value(forKey: key), equals: value) }
      try await expect(store, keeps: Dictionary(uniqueKeysWithValues: entries), in: trial)
    }
  }

  private mutating func addRoundTrips() {
    addRoundTrip("45", "empty values") { _ in
      [SampleValue(), SampleValue(list: [""], dictionary: ["": []], children: [SampleValue()])]
    }
    addRoundTrip("46", "all byte values") { _ in
      [SampleValue(bytes: Data([0x00, 0x80, 0xC0, 0xFF])), SampleValue(bytes: Data(0...UInt8.max))]
    }
    addRoundTrip("47", "values of up to 1 MiB") { generator in
      let odd = Int.random(in: 2..<1 << 18, using: &generator)
      return [1, 511, 512, 513, 4_095, 4_096, 4_097, 65_535, 65_536, 65_537, 1 << 20, odd].map { size in
        var bytes = Data(capacity: size + 8)
        while bytes.count < size { withUnsafeBytes(of: generator.next()) { bytes.append(contentsOf: $0) } }
        return SampleValue(bytes: bytes.prefix(size))
      }
    }
    addRoundTrip("48", "strings of every kind") { _ in
      let texts: [String] = [
        "\u{E9}", "e\u{301}", "🐄", "👩‍👩‍👧", "a\0b", "\u{0}", "\u{7F}\u{1B}\n\r\t\u{8}\u{C}", "\"\\/'", "</script>",
        "\u{2028}\u{2029}", "\u{FEFF}x", "\u{FFFD}\u{FFFF}\u{10FFFF}", "\\u0041", "null", "true", "1e400",
        String(repeating: "ä☺", count: 5_000),
      ]
      return texts.map { SampleValue($0, list: [$0, $0 + "!"]) }
    }
    addRoundTrip("49a", "nested lists, dictionaries and values") { _ in
      [
        SampleValue(
          "outer", list: ["a", "b", ""], dictionary: ["x": [1, 2, 3], "y": [], "a/b": [-1]],
          children: [SampleValue("inner", children: [SampleValue("innermost", flag: true)]), SampleValue()]),
        (0..<40).reduce(SampleValue("leaf")) { inner, depth in SampleValue("depth \(depth)", children: [inner]) },
      ]
    }
    addRoundTrip("49b", "integers up to the limits of 64 bits") { _ in
      let integers: [Int64] = [.min, .min + 1, -(1 << 53) - 1, -1, 1, (1 << 53) + 1, .max - 1, .max]
      let naturals: [UInt64] = [1, (1 << 53) + 1, 1 << 63, .max - 1, .max]
      return integers.map { SampleValue(integer: $0) } + naturals.map { SampleValue(natural: $0) }
    }
    addRoundTrip("49c", "all bits of floating-point numbers") { _ in
      let doubles: [Double] = [
        -0.0, 0.1, 0.1 + 0.2, 1.0 / 3, .pi, -1.5, 1e308, .greatestFiniteMagnitude, -.greatestFiniteMagnitude,
        .leastNormalMagnitude, .leastNonzeroMagnitude, .ulpOfOne, 1.0.nextUp, 9_007_199_254_740_992, 1e21, 1e-7,
        123_456_789.125,
      ]
      return doubles.map { SampleValue(double: $0) }
    }
    addRoundTrip("49d", "dates") { _ in
      let times: [Double] = [0, 1, -1, 0.001, 791_234_567.123_456, -62_135_596_800, 1e10, -0.5]
      return times.map { SampleValue(date: Date(timeIntervalSinceReferenceDate: $0)) }
    }
    addRoundTrip("49e", "random values") { generator in
      (0..<40).map { _ in SampleValue.random(using: &generator) }
    }
  }

  private mutating func addAliasingCases() {
    add("53", "mutating a value that was passed in or returned does not change the store", keys: []) { store, _ in
      var value = SampleValue("a", bytes: Data([1, 2, 3]), list: ["x"], children: [SampleValue("child")])
      let original = value
      try await store.setValue(value, forKey: "k")
      let readers: [@Sendable () async throws -> SampleValue??] = [
        { try await store.value(forKey: "k") },
        { try await store.entries(in: .all, limit: 1).first?.value },
        { try await store.update("k") { $0 } },
      ]
      for (moment, reader) in zip(["passed in", "read", "scanned"], readers) {
        value.text = moment
        value.bytes[0] = 9
        value.list.append(moment)
        value.children[0].text = moment
        try await expect(
          "the value after mutating the one that was \(moment)", store.value(forKey: "k"), equals: original)
        value = try await (reader() ?? nil) ?? original
        try expect("the value to mutate next", value, equals: original)
      }
    }
    add("53a", "returned values stay unchanged when the store changes or closes") { trial in
      let keys: [StoreKey] = ["a", "b", "c"]
      let original = keys.map { SampleValue("\($0)", bytes: Data(repeating: UInt8(ascii: "x"), count: 20_000)) }
      let store = try await trial.open(with: Dictionary(uniqueKeysWithValues: zip(keys, original)))
      var single: [SampleValue??] = []
      for key in keys { single.append(try await store.value(forKey: key)) }
      let scanned: [SampleValue??] = try await store.entries(in: .all, limit: .max).map(\.value)
      let returned = [
        single, scanned, try await store.values(forKeys: keys), try await store.update(keys) { Array($0) },
      ]
      try await store.setValue(SampleValue("other", bytes: Data(repeating: 0, count: 20_000)), forKey: "a")
      try await store.removeValue(forKey: "b")
      try await store.apply(ChangeBatch((0..<500).map { .set(StoreKey("n\($0)"), SampleValue(integer: Int64($0))) }))
      try await store.removeAll()
      try await store.close()
      for values in returned { try expect("the values that were read before", values, equals: original) }
    }
  }

  /// Adds the cases about sizes beyond common limits.
  private mutating func addSizeCases() {
    add(
      "54", "a value above the store's limit is refused; without a limit, a value of 2 MiB is kept", keys: ["k"],
      checks: .badInput
    ) { store, _ in
      guard let limit = store.information.maximumValueSize else {
        let value = SampleValue(bytes: Data(repeating: 0xA5, count: 2 << 20))
        try await store.setValue(value, forKey: "k")
        try await expect("a value of 2 MiB", store.value(forKey: "k"), equals: value)
        return
      }
      // A much higher limit cannot be tested, because a value of that size could use up the machine's memory.
      guard limit < 64 << 20 else { return }
      try await expect("setting a value of \(limit + 1) bytes", throws: .valueTooLarge, key: "k") {
        try await store.setValue(SampleValue(bytes: Data(repeating: 0xA5, count: limit + 1)), forKey: "k")
      }
      try await expect(store, holds: Entries(keys: ["k"]))
    }
    add(
      "247", "a batch of values above 4 MiB each is kept, or refused without changes", keys: ["a", "large"],
      checks: .badInput, needs: .persistence
    ) { store, trial in
      let text = String(repeating: "0123456789abcdef", count: 1 << 18)
      var entries = ["a", "large"].map {
        StoreEntry(key: StoreKey($0), value: SampleValue?.some(SampleValue(text + $0)))
      }
      do {
        try await store.apply(ChangeBatch(entries.map { .set($0.key, $0.value) }))
      } catch StoreError.Code.valueTooLarge {
        let limit = store.information.maximumValueSize ?? .max
        try expect(
          "the maximum value size of a store that refuses a value of 4 MiB", limit < 5 << 20, expected: "below 5 MiB",
          got: "\(limit)")
        entries = entries.map { StoreEntry(key: $0.key, value: SampleValue(key: $0.key)) }
      }
      try await expect(
        "all entries", trial.settled(store).entries(in: .all, limit: .max), equals: entries)
    }
  }
}

extension SampleValue {
  /// Returns a random value.
  fileprivate static func random(using generator: inout SeededGenerator, depth: Int = 2) -> SampleValue {
    func text() -> String {
      let scalars = (0..<Int.random(in: 0..<12, using: &generator)).compactMap { _ in
        Unicode.Scalar(UInt32.random(in: 0..<(Bool.random(using: &generator) ? 0x80 : 0x11_0000), using: &generator))
      }
      return String(String.UnicodeScalarView(scalars))
    }
    return SampleValue(
      text(), integer: .random(in: .min ... .max, using: &generator), natural: generator.next(),
      double: .random(in: -1e6...1e6, using: &generator), flag: .random(using: &generator),
      bytes: Data((0..<Int.random(in: 0..<50, using: &generator)).map { _ in .random(in: 0...255, using: &generator) }),
      date: Bool.random(using: &generator)
        ? Date(timeIntervalSinceReferenceDate: .random(in: -1e9...1e9, using: &generator)) : nil,
      list: (0..<Int.random(in: 0..<4, using: &generator)).map { _ in text() },
      dictionary: ["a": [.random(in: .min ... .max, using: &generator)]],
      children: depth > 0 ? [random(using: &generator, depth: depth - 1)] : [])
  }
}

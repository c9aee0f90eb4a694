#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import Larder

extension CaseList {
  mutating func addValueCases() {
    addRoundTrip(
      45, "", "empty values",
      [SampleValue(), SampleValue(list: [""], dictionary: ["": []], children: [SampleValue()])])
    addRoundTrip(
      46, "", "all byte values",
      [SampleValue(bytes: Data([0x00, 0x80, 0xC0, 0xFF])), SampleValue(bytes: Data(0...UInt8.max))])
    add(47, "", "values of up to 1 MiB round-trip", in: .values, checks: .values) { trial in
      var generator = trial.makeGenerator()
      let odd = Int.random(in: 2..<1 << 18, using: &generator)
      let sizes = [1, 511, 512, 513, 4_095, 4_096, 4_097, 65_535, 65_536, 65_537, 1 << 20, odd]
      let values = sizes.map { size in
        var bytes = Data(capacity: size + 8)
        while bytes.count < size {
          withUnsafeBytes(of: generator.next()) { bytes.append(contentsOf: $0) }
        }
        return SampleValue(bytes: bytes.prefix(size))
      }
      try await expect(trial, keeps: values)
    }
    let texts: [String] = [
      "\u{E9}", "e\u{301}", "🐄", "👩‍👩‍👧", "a\0b", "\u{0}", "\u{7F}\u{1B}\n\r\t\u{8}\u{C}", "\"\\/'", "</script>",
      "\u{2028}\u{2029}", "\u{FEFF}x", "\u{FFFD}\u{FFFF}\u{10FFFF}", "\\u0041", "null", "true", "1e400",
      String(repeating: "ä☺", count: 5_000),
    ]
    addRoundTrip(48, "", "strings of every kind", texts.map { SampleValue($0, list: [$0, $0 + "!"]) })
    addRoundTrip(
      49, "a", "nested lists, dictionaries and values",
      [
        SampleValue(
          "outer", list: ["a", "b", ""], dictionary: ["x": [1, 2, 3], "y": [], "a/b": [-1]],
          children: [SampleValue("inner", children: [SampleValue("innermost", flag: true)]), SampleValue()]),
        (0..<40).reduce(SampleValue("leaf")) { inner, depth in SampleValue("depth \(depth)", children: [inner]) },
      ])
    let integers: [Int64] = [.min, .min + 1, -(1 << 53) - 1, -1, 1, (1 << 53) + 1, .max - 1, .max]
    let naturals: [UInt64] = [1, (1 << 53) + 1, 1 << 63, .max - 1, .max]
    addRoundTrip(
      49, "b", "integers up to the limits of 64 bits",
      integers.map { SampleValue(integer: $0) } + naturals.map { SampleValue(natural: $0) })
    let doubles: [Double] = [
      -0.0, 0.1, 0.1 + 0.2, 1.0 / 3, .pi, -1.5, 1e308, .greatestFiniteMagnitude, -.greatestFiniteMagnitude,
      .leastNormalMagnitude, .leastNonzeroMagnitude, .ulpOfOne, 1.0.nextUp, 9_007_199_254_740_992, 1e21, 1e-7,
      123_456_789.125,
    ]
    addRoundTrip(49, "c", "all bits of floating-point numbers", doubles.map { SampleValue(double: $0) })
    let times: [Double] = [0, 1, -1, 0.001, 791_234_567.123_456, -62_135_596_800, 1e10, -0.5]
    addRoundTrip(
      49, "d", "dates", times.map { SampleValue(date: Date(timeIntervalSinceReferenceDate: $0)) })
    add(49, "e", "random values round-trip", in: .values, checks: .values) { trial in
      var generator = trial.makeGenerator()
      try await expect(trial, keeps: (0..<40).map { _ in SampleValue.random(using: &generator) })
    }
    add(
      50, "", "a value that cannot be encoded is refused, and the previous value is kept", in: .values,
      checks: .badInput,
      needs: [.encoding, .immediateRefusal]
    ) { trial in
      var store = try await trial.open(withKeys: ["a", "b"])
      for key: StoreKey in ["a", "new"] {
        let error = try await expect("setting a value that cannot be encoded", throws: .encodingFailed, key: key) {
          try await store.setValue(.unencodable(), forKey: key)
        }
        try expect("the outcome", error.outcome, equals: .nothingChanged)
      }
      let entries: [(StoreKey, SampleValue?)] = [("a", SampleValue(key: "a")), ("b", SampleValue(key: "b"))]
      try await expect("the contents", store, holds: entries)
      store = try await trial.settled(store)
      try await expect("the contents, reopened if persistent", store, holds: entries)
    }
    add(
      53, "", "mutating a value that was passed in or returned does not change the store", in: .values, checks: .values
    ) {
      trial in
      let store = try await trial.open()
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
    add(53, "a", "returned values stay unchanged when the store changes or closes", in: .values, checks: .values) {
      trial in
      let entries = ["a", "b", "c"].map { key -> (StoreKey, SampleValue?) in
        (StoreKey(key), SampleValue(key, bytes: Data(repeating: UInt8(ascii: "x"), count: 20_000)))
      }
      let store = try await trial.open(with: entries)
      let keys = entries.map(\.0)
      var handedOut = [try await store.entries(in: .all, limit: .max).map(\.value)]
      handedOut.append(try await store.values(forKeys: keys).compactMap { $0 })
      handedOut.append(try await store.update(keys) { $0 }.compactMap { $0 })
      handedOut.append([])
      for key in keys { handedOut[3] += try await store.value(forKey: key).map { [$0] } ?? [] }
      try await store.setValue(SampleValue("other", bytes: Data(repeating: 0, count: 20_000)), forKey: "a")
      try await store.removeValue(forKey: "b")
      try await store.apply(ChangeBatch((0..<500).map { .set(StoreKey("n\($0)"), SampleValue(integer: Int64($0))) }))
      try await store.removeAll()
      try await store.close()
      for values in handedOut { try expect("the values that were read before", values, equals: entries.map(\.1)) }
    }
    add(
      54, "", "a value above the store's limit is refused; without a limit, a value of 2 MiB is kept", in: .values,
      checks: .badInput
    ) {
      trial in
      let store = try await trial.open(withKeys: ["k"])
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
      try await expect("the contents", store, holds: [("k", SampleValue(key: "k"))])
    }
    add(201, "", "the store lacks exactly the capabilities that the suite states", in: .values, checks: .values) {
      trial in
      let store = try await trial.open(withKeys: ["k"])
      let durability = store.information.durability
      try expect(
        "whether the suite states that the store lacks persistence; its durability is \(durability)",
        trial.lacking.contains(.persistence), equals: durability == .volatile)
      if durability != .volatile {
        try expect(
          "whether the suite states that the store lacks acknowledgedPersistence; its durability is \(durability)",
          trial.lacking.contains(.acknowledgedPersistence), equals: durability == .accepted)
      }
      if trial.lacking.contains(.readOnlyAccess), !trial.lacking.contains(.persistence) {
        let reader = try await trial.openElsewhereForReading()
        try expect(
          "whether a store that lacks readOnlyAccess, as the suite states, reports read-only access",
          reader?.information.access == .readOnly,
          equals: false)
      }
      if trial.lacking.contains(.encoding) {
        try await store.setValue(.unencodable(), forKey: "k")
        try await expect(
          "a value that cannot be encoded, in a store that lacks encoding, as the suite states",
          store.value(forKey: "k"),
          equals: .unencodable())
      }
      try await expect("whether it contains the key that was set", store.contains("k"), equals: true)
    }
  }

  private mutating func addRoundTrip(_ number: Int, _ variant: String, _ content: String, _ values: [SampleValue]) {
    add(number, variant, "\(content) round-trip", in: .values, checks: .values) { trial in
      try await expect(trial, keeps: values)
    }
  }
}

/// Throws a ``Mismatch`` unless a fresh store returns each of the given values, for every way of reading.
private func expect<Store>(_ trial: Trial<Store>, keeps values: [SampleValue]) async throws {
  let entries = values.enumerated().map { (StoreKey(integer: $0.offset), $0.element) as (StoreKey, SampleValue?) }
  var store = try await trial.open(with: entries)
  for (key, value) in entries {
    try await expect("the value", store.value(forKey: key), equals: value)
  }
  try await expect("the contents", store, holds: entries)
  store = try await trial.settled(store)
  try await expect("the contents, reopened if persistent", store, holds: entries)
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

extension CaseList {
  /// Adds the cases about sizes and numbers beyond common limits.
  mutating func addSizeCases() {
    add(
      247, "", "a batch of values above 4 MiB each is kept, or refused without changes", in: .values,
      checks: .badInput, needs: .persistence
    ) { trial in
      let text = String(repeating: "0123456789abcdef", count: 1 << 18)
      let large: [(StoreKey, SampleValue?)] = ["a", "large"].map { ($0, SampleValue("\(text)\($0)")) }
      var entries: [(StoreKey, SampleValue?)] = ["a", "large"].map { ($0, SampleValue(key: $0)) }
      let store = try await trial.open(with: entries)
      let limit = store.information.maximumValueSize ?? .max
      do {
        try await store.apply(ChangeBatch(large.map { .set($0, $1) }))
        entries = large
      } catch StoreError.Code.valueTooLarge {
        try expect(
          "the maximum value size of a store that refuses a value of 4 MiB", limit < 5 << 20, expected: "below 5 MiB",
          got: "\(limit)")
      }
      let settled = try await trial.settled(store)
      try await expect(
        "the contents", settled.entries(in: .all, limit: .max), equals: entries.map { StoreEntry(key: $0, value: $1) })
    }
    add(
      249, "", "scans, reads and updates of more than 10,000 entries are complete", in: .scans, checks: .scans
    ) { trial in
      // More than 999, 1,000, 1,024, 4,096, 8,192 and 10,000. The values are minimal because only their number matters.
      let keys = (0...10_000).map { StoreKey(integer: $0) }
      let store = try await trial.open(with: keys.map { ($0, nil) })
      try await expect("the count", store.count(), equals: keys.count)
      try await expect("the keys", store.keys(in: .all, limit: .max), equals: keys)
      try await expect(
        "the keys, descending", store.keys(in: .all, limit: .max, order: .descending), equals: keys.reversed())
      try await expect("the keys of all entries", store.entries(in: .all, limit: .max).map(\.key), equals: keys)
      try await expect("the slots", store.values(forKeys: keys), equals: keys.map { _ in .some(nil) })
      try await store.update(keys) { slots in
        slots = slots.enumerated().map { $0.offset == 0 ? .some(nil) : nil }
      }
      try await expect(
        "the keys after an update that removes all but the first", store.keys(in: .all, limit: .max),
        equals: Array(keys.prefix(1)))
    }
  }
}

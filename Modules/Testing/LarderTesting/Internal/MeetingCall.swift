import Larder

/// A call that meets the closing of a store, and what must come of it where it is not refused.
struct MeetingCall<Store: DataStore>: Sendable where Store.Value == SampleValue? {
  let name: String
  /// What it writes, for one key of its own; `nil` where it only reads.
  var effect: (key: StoreKey, value: SampleValue??)?
  /// What stood under that key before.
  var valueBefore: SampleValue??
  /// Whether only its arguments can be refused.
  var isSenseless = false
  let run: @Sendable (Store) async throws -> Void

  /// What the store must hold before: nobody writes to the first three.
  static var keys: [StoreKey] { ["read:1", "read:2", "read:3", "removed", "range:1", "updated"] }

  /// Runs it.
  ///
  /// - Returns: Whether it was done; `false` where it was refused since the store is closing.
  /// - Throws: A ``Mismatch`` where it gave something else than it must.
  func completes(on store: Store) async throws -> Bool {
    do {
      try await run(store)
    } catch StoreError.Code.closed {
      return false
    } catch let error as StoreError where isSenseless && [.invalidKey, .invalidArgument].contains(error.code) {
      return false
    }
    try expect("whether \(name) completes", isSenseless, equals: false)
    return true
  }

  /// Every operation of the contract.
  static var all: [MeetingCall] { reading + writing + senseless }

  private static var reading: [MeetingCall] {
    let keys = Array(keys.prefix(3))
    let values = keys.map { SampleValue(key: $0) as SampleValue? }
    let range = KeyRange.prefix("read:")
    return [
      MeetingCall(name: "value") { try await expect("value", $0.value(forKey: keys[0]), equals: values[0]) },
      MeetingCall(name: "values") { try await expect("values", $0.values(forKeys: keys), equals: values) },
      MeetingCall(name: "contains") { try await expect("contains", $0.contains(keys[1]), equals: true) },
      MeetingCall(name: "entries") {
        try await expect(
          "entries", $0.entries(in: range, limit: .max, order: .ascending),
          equals: zip(keys, values).map { StoreEntry(key: $0, value: $1) })
      },
      MeetingCall(name: "entries, limit 0") {
        try await expect("entries", $0.entries(in: .all, limit: 0, order: .ascending), equals: [])
      },
      MeetingCall(name: "keys") {
        try await expect("keys", $0.keys(in: range, limit: 2, order: .descending), equals: [keys[2], keys[1]])
      },
      MeetingCall(name: "keys in an empty range") {
        try await expect("keys", $0.keys(in: "b"..<"a", limit: .max, order: .ascending), equals: [])
      },
      MeetingCall(name: "count") { try await expect("count", $0.count(in: range), equals: 3) },
      MeetingCall(name: "page") {
        try await expect("page", $0.pages(of: range, size: 2).page().entries.map(\.key), equals: [keys[0], keys[1]])
      },
      MeetingCall(name: "synchronize") { try await $0.synchronize() },
    ]
  }

  private static var writing: [MeetingCall] {
    let value: SampleValue? = SampleValue("written")
    return [
      MeetingCall(name: "setValue", effect: ("set", value)) { try await $0.setValue(value, forKey: "set") },
      MeetingCall(name: "apply", effect: ("applied", value)) {
        try await $0.apply([.set("applied too", nil), .set("applied", value)])
      },
      MeetingCall(name: "removeValue", effect: ("removed", nil), valueBefore: SampleValue(key: "removed")) {
        try await $0.removeValue(forKey: "removed")
      },
      MeetingCall(name: "removeAll", effect: ("range:1", nil), valueBefore: SampleValue(key: "range:1")) {
        try await $0.removeAll(in: .prefix("range:"))
      },
      MeetingCall(name: "update", effect: ("other", value)) { try await $0.update("other") { $0 = value } },
    ]
  }

  private static var senseless: [MeetingCall] {
    let invalid = StoreCall<Store>.taking("").filter { ["value", "update"].contains($0.name) }
    return (invalid + StoreCall<Store>.senseless).map { call in
      MeetingCall(name: call.name, isSenseless: true, run: call.run)
    }
  }
}

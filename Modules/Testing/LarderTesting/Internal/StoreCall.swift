import Larder

/// A call of a store, for promises that hold for every operation.
struct StoreCall<Store: DataStore>: Sendable where Store.Value == SampleValue? {
  let name: String
  /// The operation that an error of the call must state.
  let operation: StoreOperation
  let run: @Sendable (Store) async throws -> Void

  init(_ name: String, _ operation: StoreOperation, _ run: @escaping @Sendable (Store) async throws -> Void) {
    self.name = name
    self.operation = operation
    self.run = run
  }

  /// Returns every call that takes a key, combined with the valid key "a" if the call takes several keys.
  static func taking(_ key: StoreKey) -> [StoreCall] {
    let value: SampleValue? = "new"
    return reading(key) + [
      StoreCall("setValue", .apply) { try await $0.setValue(value, forKey: key) },
      StoreCall("removeValue", .apply) { try await $0.removeValue(forKey: key) },
      StoreCall("apply, set first", .apply) { try await $0.apply([.set(key, value), .set("a", value)]) },
      StoreCall("apply, set in the middle", .apply) {
        try await $0.apply([.set("a", value), .set(key, value), .remove("b")])
      },
      StoreCall("apply, removal at the end", .apply) { try await $0.apply([.removeAll(.all), .remove(key)]) },
      StoreCall("update", .update) { try await $0.update(key) { $0 = value } },
      StoreCall("update of several keys", .update) {
        try await $0.update(["a", key]) { slots in slots.assign([.some(value), .some(value)]) }
      },
    ]
  }

  private static func reading(_ key: StoreKey) -> [StoreCall] {
    [
      StoreCall("value", .value) { _ = try await $0.value(forKey: key) },
      StoreCall("subscript", .value) { _ = try await $0[key] },
      StoreCall("values", .values) { _ = try await $0.values(forKeys: [key]) },
      StoreCall("values, last of several", .values) { _ = try await $0.values(forKeys: ["a", "missing", key]) },
      StoreCall("contains", .keys) { _ = try await $0.contains(key) },
    ]
  }

  /// Every operation except closing, including calls that need not read the store.
  static var all: [StoreCall] {
    reading("a") + writing + [
      StoreCall("values of no keys", .values) { _ = try await $0.values(forKeys: []) },
      StoreCall("entries", .entries) { _ = try await $0.entries(in: .all, limit: .max, order: .ascending) },
      StoreCall("entries, descending", .entries) { _ = try await $0.entries(in: .all, limit: 1, order: .descending) },
      StoreCall("entries, limit 0", .entries) { _ = try await $0.entries(in: .all, limit: 0, order: .ascending) },
      StoreCall("entries in an empty range", .entries) {
        _ = try await $0.entries(in: "b"..<"a", limit: .max, order: .ascending)
      },
      StoreCall("sequence of entries", .entries) { for try await _ in $0.entries() {} },
      StoreCall("keys", .keys) { _ = try await $0.keys(in: .all, limit: .max, order: .ascending) },
      StoreCall("keys, limit 0", .keys) { _ = try await $0.keys(in: .all, limit: 0, order: .ascending) },
      StoreCall("keys in an empty range", .keys) {
        _ = try await $0.keys(in: "b"..<"a", limit: .max, order: .descending)
      },
      StoreCall("sequence of keys", .keys) { for try await _ in $0.keys() {} },
      StoreCall("count", .count) { _ = try await $0.count(in: .all) },
      StoreCall("count of an empty range", .count) { _ = try await $0.count(in: "b"..<"a") },
      StoreCall("page", .entries) { _ = try await $0.pages().page() },
      StoreCall("pageCount", .count) { _ = try await $0.pages().pageCount },
      StoreCall("synchronize", .synchronize) { try await $0.synchronize() },
    ]
  }

  /// Calls with an invalid argument other than an invalid key.
  static var senseless: [StoreCall] {
    [
      StoreCall("entries, limit -1", .entries) { _ = try await $0.entries(in: .all, limit: -1, order: .ascending) },
      StoreCall("entries in an empty range, limit -1", .entries) {
        _ = try await $0.entries(in: "b"..<"a", limit: -1, order: .ascending)
      },
      StoreCall("keys, limit -1", .keys) { _ = try await $0.keys(in: .all, limit: -1, order: .descending) },
      StoreCall("update with a duplicate key", .update) { try await $0.update(["a", "a"]) { _ in } },
      StoreCall("pages of size 0", .page) { _ = try await $0.pages(size: 0).page() },
    ]
  }

  /// Calls with an empty or too long key, at every position that takes a key.
  static var takingInvalidKeys: [StoreCall] { StoreKey.invalid.flatMap(taking) }

  /// Every operation that stores a value.
  static func storing(_ value: SampleValue?, forKey key: StoreKey) -> [StoreCall] {
    [
      StoreCall("setValue", .apply) { try await $0.setValue(value, forKey: key) },
      StoreCall("apply", .apply) { try await $0.apply([.set("a", nil), .set(key, value)]) },
      StoreCall("update", .update) { try await $0.update(key) { $0 = value } },
    ]
  }

  /// Every operation that writes, including calls that change nothing.
  static var writing: [StoreCall] {
    changing + [
      StoreCall("apply of an empty batch", .apply) { try await $0.apply([]) },
      StoreCall("update of no keys", .update) { try await $0.update([StoreKey]()) { _ in } },
    ]
  }

  /// Every operation that changes a store with the keys "a" and "b".
  static var changing: [StoreCall] {
    let value: SampleValue? = "new"
    return [
      StoreCall("setValue", .apply) { try await $0.setValue(value, forKey: "a") },
      StoreCall("removeValue", .apply) { try await $0.removeValue(forKey: "a") },
      StoreCall("removeAll", .apply) { try await $0.removeAll() },
      StoreCall("apply", .apply) { try await $0.apply([.set("a", value), .remove("b")]) },
      StoreCall("update", .update) { try await $0.update("a") { $0 = value } },
      StoreCall("update of several keys", .update) {
        try await $0.update(["a", "b"]) { slots in slots.assign([.some(value), nil]) }
      },
    ]
  }
}

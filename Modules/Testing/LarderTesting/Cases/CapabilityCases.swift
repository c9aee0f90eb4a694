import Larder

/// Cases that compare the capabilities of the store with its basic operations, which must mean the same keys.
extension CaseList {
  mutating func addCapabilityCases() {
    begin(.keys, checking: .keys)
    if Store.self is any ExpirableStore.Type { addExpiryCases() }
    if Store.self is any InvalidatableStore.Type { addInvalidationCase() }
  }

  private mutating func addExpiryCases() {
    add("288a", "a value with a time to live is the value of its key, and of no other", keys: ["a", "z"]) { store, _ in
      let expiry = try capability("time to live", AnyDataStore(store).expiry)
      try await expiry.setValue("new", forKey: "k", timeToLive: .after(.seconds(86_400)))
      try await expect(store, holds: Entries(keys: ["a", "z"]).merging(["k": "new"]) { $1 })
      try await expect("the value without a renewal", expiry.peekValue(forKey: "k"), equals: "new")
      try await expect(
        "whether its time is limited", expiry.timeUntilExpiry(ofAny: ["k"]).map { $0 > .zero }, equals: true)
      try await expect("whether it can be touched", expiry.touch("k", timeToLive: .never), equals: true)
      try await expect("its time after the touch", expiry.timeUntilExpiry(ofAny: ["k"]), equals: nil)
      try await expect("whether it has a remaining time", expiry.remainingTime(forKey: "k") != nil, equals: true)
      try await store.removeValue(forKey: "k")
      try await expect("the value after its removal", expiry.peekValue(forKey: "k"), equals: nil)
      try await expect("whether a missing key can be touched", expiry.touch("k", timeToLive: nil), equals: false)
      try await expect("the remaining time of a missing key", expiry.remainingTime(forKey: "k"), equals: nil)
      try await expect("the time until a missing key expires", expiry.timeUntilExpiry(ofAny: ["k"]), equals: .zero)
      try await expect(store, holds: Entries(keys: ["a", "z"]))
      let day = TimeToLive.after(.seconds(86_400))
      try await expect("an insertion", expiry.insertValue("new", forKey: "k", timeToLive: day), equals: true)
      try await expect(
        "the time of the insertion", expiry.timeUntilExpiry(ofAny: ["k"]).map { $0 > .zero }, equals: true)
      try await expect("a second insertion", expiry.insertValue("no", forKey: "k", timeToLive: .never), equals: false)
      try await expect(
        "a replacement of another value",
        expiry.replaceValue("no", forKey: "k", expecting: "other", timeToLive: .never), equals: false)
      try await expect(
        "a replacement", expiry.replaceValue("newer", forKey: "k", expecting: "new", timeToLive: .never), equals: true)
      try await expect("the time of the replacement", expiry.timeUntilExpiry(ofAny: ["k"]), equals: nil)
      try await expect(store, holds: Entries(keys: ["a", "z"]).merging(["k": "newer"]) { $1 })
      try await expect(
        "a replacement by nothing", expiry.replaceValue(nil, forKey: "k", expecting: "newer", timeToLive: nil),
        equals: true)
      try await expect(store, holds: Entries(keys: ["a", "z"]))
    }
    add("288b", "operations with a time to live refuse an invalid key", checks: .errors) { store, _ in
      let expiry = try capability("time to live", AnyDataStore(store).expiry)
      for key in StoreKey.invalid + [store.information.tooLongKey] {
        try await expect("setting a value", throws: .invalidKey, key: key) {
          try await expiry.setValue("new", forKey: key, timeToLive: nil)
        }
        try await expect("a read without a renewal", throws: .invalidKey, key: key) {
          try await expiry.peekValue(forKey: key)
        }
        try await expect("an insertion", throws: .invalidKey, key: key) {
          try await expiry.insertValue("new", forKey: key, timeToLive: nil)
        }
        try await expect("a touch", throws: .invalidKey, key: key) { try await expiry.touch(key, timeToLive: nil) }
        try await expect("the remaining time", throws: .invalidKey, key: key) {
          try await expiry.remainingTime(forKey: key)
        }
        try await expect("the time until an entry expires", throws: .invalidKey, key: key) {
          try await expiry.timeUntilExpiry(ofAny: ["a", key])
        }
      }
      try await expect(store, holds: [:])
    }
  }

  private mutating func addInvalidationCase() {
    add("288c", "the removal of copies from a cache removes no entry", keys: ["a", "b"]) { store, trial in
      let cache = try capability("removal of copies", AnyDataStore(store).invalidation)
      try cache.invalidate("a")
      try cache.invalidate("missing")
      try await expect(store, holds: Entries(keys: ["a", "b"]), "after the removal of a copy")
      for key in StoreKey.invalid + [store.information.tooLongKey] {
        try await expect("the removal of a copy", throws: .invalidKey, key: key) { try cache.invalidate(key) }
      }
      try cache.invalidateAll()
      try await expect(store, keeps: Entries(keys: ["a", "b"]), in: trial)
    }
  }
}

/// Returns a capability that the type of the store has, or throws a ``Mismatch``.
private func capability<Capability>(_ name: String, _ found: Capability?) throws -> Capability {
  guard let found else { throw Mismatch(subject: "the capability \(name)", expected: "present", got: "missing") }
  return found
}

extension StoreInformation {
  /// A key that is longer by one byte than those of the store, which its base may accept.
  fileprivate var tooLongKey: StoreKey { StoreKey(bytes: Array(repeating: 0x6B, count: maximumKeyLength + 1)) }
}

import Larder
import TestSupport
import Testing

@Suite struct StoreInformationTests {
  private let information = StoreInformation(name: "users", durability: .volatile, sharing: .exclusive)

  private static func key(_ count: Int) -> StoreKey { StoreKey(bytes: [UInt8](repeating: 0x61, count: count)) }

  @Test(arguments: [1, 2, 23, 24, 510, 511]) func `accepts keys within the limit`(_ count: Int) throws {
    let key = StoreInformationTests.key(count)
    try information.check(key, for: .value)
    try information.check([key, "a"], for: .values)
    try information.check([.set(key, 1), .remove(key)] as ChangeBatch)
    try information.check(updateOf: [key, "b"])
  }

  @Test(arguments: [0, 512, 513, 100_000]) func `refuses keys beyond the limit`(_ count: Int) {
    let key = StoreInformationTests.key(count)
    let errors = [
      expectStoreError(.invalidKey) { try information.check(key, for: .value) },
      expectStoreError(.invalidKey) { try information.check(["a", key], for: .values) },
      expectStoreError(.invalidKey) { try information.check([.removeAll(.all), .set(key, 1)] as ChangeBatch) },
      expectStoreError(.invalidKey) { try information.check([.set("a", 1), .remove(key)] as ChangeBatch) },
      expectStoreError(.invalidKey) { try information.check(updateOf: ["a", key]) },
    ]
    #expect(errors.map(\.?.operation) == [.value, .values, .apply, .apply, .update])
    #expect(errors.allSatisfy { $0?.key == key && $0?.store == "users" && $0?.outcome == .nothingChanged })
    #expect(errors.allSatisfy { $0?.description.contains("aaa") == false })
  }

  @Test func `the bounds of a range may be any bytes`() throws {
    let long = StoreInformationTests.key(600)
    try information.check([.removeAll(KeyRange(from: "", upTo: long)), .removeAll(.all)] as ChangeBatch<Int>)
  }

  @Test func `refuses a negative limit`() throws {
    try information.check(limit: 0, for: .entries)
    try information.check(limit: .max, for: .entries)
    let error = expectStoreError(.invalidArgument) { try information.check(limit: -1, for: .keys) }
    #expect(error?.operation == .keys)
    expectStoreError(.invalidArgument) { try information.check(limit: .min, for: .keys) }
  }

  @Test func `refuses duplicate keys in an update`() throws {
    try information.check(updateOf: [])
    let error = expectStoreError(.invalidArgument) { try information.check(updateOf: ["a", "b", "a"]) }
    #expect(error?.key == "a")
    // The composed and the decomposed letter are two keys.
    try information.check(updateOf: ["\u{E9}", "e\u{301}"])
    // An invalid key is reported before a duplicate one.
    expectStoreError(.invalidKey) { try information.check(updateOf: ["a", "a", ""]) }
  }

  @Test func `a closed store throws`() {
    let error = information.closedError(for: .count)
    #expect(error.code == .closed)
    #expect(error.operation == .count)
    #expect(error.store == "users")
  }

  @Test func `durability decides the acknowledgement`() {
    #expect(Durability.File.allCases.map { Durability($0) } == [.synced, .buffered])
  }
}

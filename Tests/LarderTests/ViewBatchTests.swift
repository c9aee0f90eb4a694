import Larder
import LarderTesting
import TestSupport
import Testing

/// Several typed views of one store that change in one step, with ``ViewBatch`` or an update.
@Suite struct ViewBatchTests {
  private typealias Bytes = MemoryStore<[UInt8]>

  private let bytes = MemoryStore<[UInt8]>(name: "bytes")
  private var notes: TypedView<Bytes, String> { bytes.typed(String.self, prefix: "note/", codec: .json()) }
  private var archive: TypedView<Bytes, String> { bytes.typed(String.self, prefix: "archive/", codec: .json()) }
  private var counts: TypedView<Bytes, Int> { bytes.typed(Int.self, prefix: "count/", codec: .json()) }

  private func contents(_ store: Bytes) throws -> [String] {
    try store.keys(in: .all, limit: .max, order: .ascending).map { key in
      let value = try store.value(forKey: key).map { String(decoding: $0, as: UTF8.self) }
      return "\(key.string ?? "") \(value ?? "")"
    }
  }

  // MARK: Batches

  @Test func aBatchChangesSeveralViewsInSequence() async throws {
    try await notes.setValue("old", forKey: "1")
    try await archive.setValue("gone", forKey: "0")
    var batch = ViewBatch<Bytes>()
    #expect(batch.isEmpty)
    batch.removeValue(forKey: "1", in: notes)
    batch.removeAll(of: archive)
    batch.setValue("old", forKey: "1", in: archive)
    batch.append(.set("archived", 1), to: counts)
    #expect(batch.count == 4)
    try await bytes.apply(batch)
    #expect(try contents(bytes) == ["archive/1 \"old\"", "count/archived 1"])
    try await bytes.apply(ViewBatch())
  }

  @Test func rangesStayWithinTheirView() async throws {
    for view in [notes, archive] {
      for key in ["a", "b", "c"] { try await view.setValue(key, forKey: StoreKey(key)) }
    }
    var batch = ViewBatch<Bytes>()
    batch.removeAll(in: "b"..., of: archive)
    batch.removeAll(in: ..<"b", of: notes)
    try await bytes.apply(batch)
    #expect(try bytes.keys(in: .all, limit: .max, order: .ascending) == ["archive/a", "note/b", "note/c"])
  }

  @Test(arguments: [1, 200]) func oneInvalidChangeRefusesTheWholeBatch(_ count: Int) async throws {
    let numbers = bytes.typed(Double.self, prefix: "number/", codec: .json())
    var batch = ViewBatch<Bytes>()
    for index in 0..<count { batch.setValue("note", forKey: StoreKey(integer: index), in: notes) }
    var unencodable = batch
    unencodable.setValue(.infinity, forKey: "limit", in: numbers)
    let encoding = await expectStoreError(.encodingFailed) { try await bytes.apply(unencodable) }
    #expect(encoding?.key == "limit")

    // The view's own limit counts, although the base would accept a shorter prefix.
    batch.setValue(1, forKey: StoreKey(bytes: [UInt8](repeating: 0x61, count: 505)), in: counts)
    batch.setValue(1, forKey: StoreKey(bytes: [UInt8](repeating: 0x61, count: 506)), in: counts)
    await expectStoreError(.invalidKey) { try await bytes.apply(batch) }
    #expect(try bytes.count(in: .all) == 0)
  }

  @Test func overlappingPrefixesAreRefused() async throws {
    let pairs: [(StoreKey, StoreKey)] = [("note/", "note/old/"), ("note/old/", "note/"), ("", "note/"), ("n", "n")]
    for (first, second) in pairs {
      let texts = bytes.typed(String.self, prefix: first, codec: .json())
      let numbers = bytes.typed(Int.self, prefix: second, codec: .json())
      var batch = ViewBatch<Bytes>()
      batch.setValue("a", forKey: "a", in: texts)
      batch.setValue(1, forKey: "b", in: numbers)
      let error = await expectStoreError(.invalidArgument) { try await bytes.apply(batch) }
      #expect(error?.message.contains("overlap") == true)
      await expectStoreError(.invalidArgument) {
        try await bytes.update(texts.key("a"), numbers.key("b")) { text, number in (text, number) = ("a", 1) }
      }
    }
    #expect(try bytes.count(in: .all) == 0)
  }

  @Test func theSameViewMayBeCreatedTwiceButNotWithAnotherCodec() async throws {
    var batch = ViewBatch<Bytes>()
    batch.setValue("a", forKey: "1", in: notes)
    batch.setValue("b", forKey: "2", in: bytes.typed(String.self, prefix: "note/", codec: .json()))
    try await bytes.apply(batch)
    batch.setValue("c", forKey: "3", in: bytes.typed(String.self, prefix: "note/", codec: .json().checksummed()))
    await expectStoreError(.invalidArgument) { try await bytes.apply(batch) }
    #expect(try bytes.count(in: .all) == 2)
  }

  @Test func aViewOfAnotherStoreIsRefused() async throws {
    let other = MemoryStore<[UInt8]>(name: "other")
    let elsewhere = other.typed(Int.self, prefix: "count/", codec: .json())
    var batch = ViewBatch<Bytes>()
    batch.setValue("a", forKey: "1", in: notes)
    batch.setValue(1, forKey: "1", in: elsewhere)
    await expectStoreError(.invalidArgument) { try await bytes.apply(batch) }
    await expectStoreError(.invalidArgument) { try await other.apply(batch) }
    await expectStoreError(.invalidArgument) {
      try await bytes.update(notes.key("1"), elsewhere.key("1")) { note, count in (note, count) = ("a", 1) }
    }
    #expect(try bytes.count(in: .all) + other.count(in: .all) == 0)
  }

  @Test func anErrorOfTheBaseNamesTheKeyOfTheView() async throws {
    let store = ProbedStore<[UInt8]> { operation, _ in
      throw StoreError(.ioFailed, during: operation, store: "probed", key: "count/archived", message: "no")
    }
    var batch = ViewBatch<ProbedStore<[UInt8]>>()
    let counts = store.typed(Int.self, prefix: "count/", codec: .json())
    batch.setValue("a", forKey: "1", in: store.typed(String.self, prefix: "note/", codec: .json()))
    batch.setValue(1, forKey: "archived", in: counts)
    let error = await expectStoreError(.ioFailed) { try await store.apply(batch) }
    #expect(error?.key == "archived")
  }

  // MARK: Updates

  @Test func anUpdateMovesAnEntryAndCountsIt() async throws {
    try await notes.setValue("seven", forKey: "7")
    try await notes.setValue("eight", forKey: "8")
    for key in ["7", "8", "9"] {
      let isMoved = try await bytes.update(notes.key(key), archive.key(key), counts.key("archived")) {
        note, archived, count in
        guard note != nil else { return false }
        (note, archived) = (nil, note)
        count = (count ?? 0) + 1
        return true
      }
      #expect(isMoved == (key != "9"))
    }
    #expect(try contents(bytes) == ["archive/7 \"seven\"", "archive/8 \"eight\"", "count/archived 2"])
  }

  @Test func anUpdateOfFourKeysKeepsThemApart() async throws {
    let numbers = bytes.typed(Double.self, prefix: "number/", codec: .json())
    let sum = try await bytes.update(notes.key("1"), counts.key("1"), numbers.key("1"), notes.key("2")) {
      note, count, number, other in
      (note, count, number, other) = ("a", 1, 0.5, "b")
      return 7
    }
    #expect(sum == 7)
    try await bytes.update(counts.key("1"), numbers.key("1")) { count, number in count = count.map { $0 + 1 } }
    #expect(try contents(bytes) == ["count/1 2", "note/1 \"a\"", "note/2 \"b\"", "number/1 0.5"])
  }

  @Test func updatesOfSeveralViewsDoNotComeBetweenEachOther() async throws {
    let (bytes, notes, counts) = (bytes, notes, counts)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<20 {
        group.addTask {
          try await bytes.update(notes.key("log"), counts.key("log")) { log, count in
            log = (log ?? "") + "x"
            count = (count ?? 0) + 1
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try await notes.value(forKey: "log")?.count == 20)
    #expect(try await counts.value(forKey: "log") == 20)
  }

  private struct Refusal: Error {}

  @Test func aBodyThatThrowsChangesNothing() async throws {
    try await notes.setValue("a", forKey: "1")
    await #expect(throws: Refusal.self) {
      try await bytes.update(notes.key("1"), counts.key("1")) { note, count in
        (note, count) = (nil, 1)
        throw Refusal()
      }
    }
    let numbers = bytes.typed(Double.self, prefix: "number/", codec: .json())
    let error = await expectStoreError(.encodingFailed) {
      try await bytes.update(notes.key("1"), numbers.key("n")) {
        $0 = nil; $1 = .infinity
      }
    }
    #expect(error?.key == "n")
    #expect(try contents(bytes) == ["note/1 \"a\""])
  }

  @Test func anUnreadableValueIsReportedWithItsKeyInTheView() async throws {
    try bytes.apply([.set("count/1", Array("\"text\"".utf8))])
    let ran = Locked(false)
    let error = await expectStoreError(.undecodable) {
      try await bytes.update(notes.key("1"), counts.key("1")) { _, _ in ran.withLock { $0 = true } }
    }
    #expect(error?.key == "1")
    #expect(!ran.withLock { $0 })
  }

  @Test func keysOfAnUpdateMustBeDistinctAndValid() async throws {
    let twice = await expectStoreError(.invalidArgument) {
      try await bytes.update(notes.key("1"), counts.key("1"), notes.key("1")) { _, _, _ in }
    }
    #expect(twice?.key == "1")
    await expectStoreError(.invalidKey) { try await bytes.update(notes.key("1"), counts.key("")) { _, _ in } }
  }
}

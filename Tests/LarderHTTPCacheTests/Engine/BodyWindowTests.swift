#if HTTPCache
import LarderTesting
import Testing

@testable import LarderHTTPCache

@Suite struct BodyWindowTests {
  private func window(isStoring: Bool) -> BodyWindow {
    BodyWindow(isStoring: isStoring, limit: 16, smallestBatch: 8, largestBatch: 16)
  }

  /// Takes all batches that are due, and tells the window that the store has them.
  private func persistAll(_ window: inout BodyWindow) {
    while let batch = window.nextBatch() {
      window.notePersisted(window.taken)
      if batch.isLast { break }
    }
  }

  @Test func `a reader gets the bytes in order`() {
    var window = window(isStoring: false)
    let reader = window.addReader()
    do { let value = window.step(reader); #expect(value == .wait) }
    window.append([1, 2])
    window.append([3])
    do { let value = window.step(reader); #expect(value == .bytes([1, 2, 3])) }
    do { let value = window.step(reader); #expect(value == .wait) }
    window.finish(.complete)
    do { let value = window.step(reader); #expect(value == .end) }
  }

  @Test func `a body that fails never ends`() {
    var window = window(isStoring: true)
    let reader = window.addReader()
    window.append([1])
    window.finish(.failed)
    window.finish(.complete)
    do { let value = window.step(reader); #expect(value == .bytes([1])) }
    do { let value = window.step(reader); #expect(value == .failure) }
    do { let value = window.nextBatch(); #expect(value == nil) }
  }

  @Test func `a reader of a range ends there`() {
    var window = window(isStoring: false)
    let reader = window.addReader(2..<4)
    do { let value = window.step(reader); #expect(value == .wait) }
    window.append([0, 1, 2, 3, 4])
    do { let value = window.step(reader); #expect(value == .bytes([2, 3])) }
    do { let value = window.step(reader); #expect(value == .end) }
    let late = window.addReader(4..<6)
    do { let value = window.step(late); #expect(value == .bytes([4])) }
    window.finish(.complete)
    do { let value = window.step(late); #expect(value == .failure, "the body is shorter than the range") }
  }

  @Test func `a batch is due when it is worth it`() throws {
    var window = window(isStoring: true)
    window.append(Array(0..<7))
    do { let value = window.nextBatch(); #expect(value == nil, "too little for a batch") }
    window.append(Array(7..<19))
    let next = window.nextBatch()
    let batch = try #require(next)
    #expect(batch.bytes == Array(0..<16))
    #expect(!batch.isLast)
    do { let value = window.nextBatch(); #expect(value == nil) }
    window.finish(.complete)
    let end = window.nextBatch()
    let last = try #require(end)
    #expect(last.bytes == [16, 17, 18])
    #expect(last.isLast)
  }

  @Test func `an empty body is one empty batch`() throws {
    var window = window(isStoring: true)
    window.finish(.complete)
    let next = window.nextBatch()
    let batch = try #require(next)
    #expect(batch.bytes.isEmpty)
    #expect(batch.isLast)
  }

  @Test func `a full window drops what the store has`() {
    var window = window(isStoring: true)
    let slow = window.addReader()
    window.append(Array(repeating: 1, count: BodyWindow.smallBuffer))
    do { let hasRoom = window.hasRoom(); #expect(!hasRoom, "the store has nothing yet") }
    persistAll(&window)
    do { let hasRoom = window.hasRoom(); #expect(hasRoom) }
    #expect(window.byteCount == 0)
    do { let value = window.step(slow); #expect(value == .stored(0..<8)) }
    window.advance(slow, to: Int64(BodyWindow.smallBuffer))
    window.append([2])
    do { let value = window.step(slow); #expect(value == .bytes([2])) }
  }

  @Test func `without a store the slowest reader decides`() {
    var window = window(isStoring: false)
    let (fast, slow) = (window.addReader(), window.addReader())
    window.append(Array(repeating: 1, count: BodyWindow.smallBuffer))
    _ = window.step(fast)
    do { let hasRoom = window.hasRoom(); #expect(!hasRoom) }
    _ = window.step(slow)
    do { let hasRoom = window.hasRoom(); #expect(hasRoom) }
    window.append(Array(repeating: 2, count: BodyWindow.smallBuffer))
    _ = window.step(fast)
    do { let hasRoom = window.hasRoom(); #expect(!hasRoom) }
    window.removeReader(slow)
    do { let hasRoom = window.hasRoom(); #expect(hasRoom) }
  }

  @Test func `a reader that lags keeps the window when storing stops`() {
    var window = window(isStoring: true)
    let slow = window.addReader()
    window.append(Array(repeating: 1, count: BodyWindow.smallBuffer))
    persistAll(&window)
    do { let hasRoom = window.hasRoom(); #expect(hasRoom) }
    window.stopStoring()
    window.append(Array(repeating: 2, count: BodyWindow.smallBuffer))
    do {
      let hasRoom = window.hasRoom(); #expect(!hasRoom, "the reader will need these bytes after those in the store")
    }
    do { let value = window.step(slow); #expect(value == .stored(0..<8)) }
    window.advance(slow, to: window.start)
    do { let value = window.step(slow); #expect(value == .bytes(Array(repeating: 2, count: BodyWindow.smallBuffer))) }
    do { let hasRoom = window.hasRoom(); #expect(hasRoom) }
  }

  private static let buffer = BodyWindow.smallBuffer

  @Test func `a reader makes others wait for a limited time`() {
    var window = window(isStoring: false)
    let (fast, slow) = (window.addReader(), window.addReader())
    window.append(Array(repeating: 1, count: Self.buffer))
    do { let room = window.makeRoom(at: .seconds(1)); #expect(room == .full, "nothing waits yet") }
    _ = window.step(fast)
    do {
      let room = window.makeRoom(at: .seconds(100)); #expect(room == .full, "the fast reader has not asked for more")
    }
    do { let value = window.step(fast); #expect(value == .wait) }
    do { let room = window.makeRoom(at: .seconds(100)); #expect(room == .fullUntil(.seconds(101))) }
    do { let room = window.makeRoom(at: .milliseconds(100_600)); #expect(room == .fullUntil(.seconds(101))) }
    // The slow reader reads, but soon makes the fast one wait again.
    _ = window.step(slow)
    do { let room = window.makeRoom(at: .milliseconds(100_700)); #expect(room == .free) }
    window.append(Array(repeating: 2, count: Self.buffer))
    _ = window.step(fast)
    _ = window.step(fast)
    do { let room = window.makeRoom(at: .seconds(200)); #expect(room == .fullUntil(.milliseconds(200_300))) }
    do { let room = window.makeRoom(at: .milliseconds(200_300)); #expect(room == .free) }
    #expect(window.cutOffCount == 1)
    #expect(window.byteCount == 0)
    do { let value = window.step(slow); #expect(value == .cutOff) }
    window.append([3])
    do { let value = window.step(fast); #expect(value == .bytes([3])) }
    do { let value = window.step(slow); #expect(value == .cutOff) }
  }

  @Test func `a reader alone is never cut off`() {
    var window = window(isStoring: false)
    let (slow, cancelled) = (window.addReader(), window.addReader())
    window.append(Array(repeating: 1, count: Self.buffer))
    _ = window.step(cancelled)
    do { let value = window.step(cancelled); #expect(value == .wait) }
    window.stopWaiting(cancelled)
    for second in 0..<100 {
      do { let room = window.makeRoom(at: .seconds(second)); #expect(room == .full) }
    }
    do { let value = window.step(slow); #expect(value == .bytes(Array(repeating: 1, count: Self.buffer))) }
  }

  @Test func `a reader that needs no more holds nothing up`() {
    var window = window(isStoring: false)
    let (fast, done) = (window.addReader(), window.addReader(0..<4))
    window.append(Array(repeating: 1, count: Self.buffer))
    _ = window.step(fast)
    _ = window.step(done)
    do { let hasRoom = window.hasRoom(); #expect(hasRoom, "although the other reader was not removed") }
  }

  @Test func `a reader in the store is cut off`() {
    var window = window(isStoring: true)
    let (fast, slow) = (window.addReader(), window.addReader())
    window.append(Array(repeating: 1, count: Self.buffer))
    _ = window.step(fast)
    persistAll(&window)
    do { let hasRoom = window.hasRoom(); #expect(hasRoom) }
    window.stopStoring()
    window.append(Array(repeating: 2, count: Self.buffer))
    _ = window.step(fast)
    _ = window.step(fast)
    do { let room = window.makeRoom(at: .zero); #expect(room == .fullUntil(.seconds(1))) }
    do { let room = window.makeRoom(at: .seconds(1)); #expect(room == .free) }
    do { let value = window.step(slow); #expect(value == .cutOff) }
  }

  @Test func `tiny chunks share buffers`() {
    var window = BodyWindow(isStoring: true)
    let reader = window.addReader()
    for index in 0..<10_000 { window.append([UInt8(truncatingIfNeeded: index)]) }
    do { let value = window.step(reader); #expect(value == .bytes((0..<10_000).map { UInt8(truncatingIfNeeded: $0) })) }
  }

  private struct Stuck: Error {}

  /// Random histories against the whole body: each reader gets exactly its bytes, the store gets the body, the memory has a
  /// bound, and there is always a party that can proceed.
  @Test(arguments: 0..<100) func `random histories`(round: Int) throws {
    var random = SeededGenerator(seed: SeededGenerator.seedOfProcess &+ UInt64(round))
    let largest = Int.random(in: 1...(3 * BodyWindow.smallBuffer), using: &random)
    let body = (0..<Int.random(in: 0...120_000, using: &random)).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
    let limit = 40_000
    var window = BodyWindow(
      isStoring: Bool.random(using: &random), limit: limit, smallestBatch: 16_384, largestBatch: 32_768)
    var stored: [UInt8] = []
    var isStored = false
    var readers: [(id: BodyWindow.Reader, range: Range<Int64>?, bytes: [UInt8], isDone: Bool)] = []
    func addReader() {
      let range: Range<Int64>? =
        Bool.random(using: &random)
        ? nil
        : {
          let low = Int64.random(in: 0...Int64(body.count), using: &random)
          return low..<Int64.random(in: low...Int64(body.count), using: &random)
        }()
      readers.append((window.addReader(range), range, [], false))
    }
    for _ in 0..<Int.random(in: 1...3, using: &random) { addReader() }
    var sent = 0
    var idle = 0
    while readers.contains(where: { !$0.isDone }) || window.ending == nil || (window.isStoring && !isStored) {
      idle += 1
      if idle == 10_000 { throw Stuck() }
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<4:
        guard window.ending == nil, window.hasRoom() else { continue }
        if window.byteCount >= limit + largest + max(largest, BodyWindow.smallBuffer) {
          Issue.record("too many bytes in memory")
        }
        if sent == body.count {
          window.finish(.complete)
        } else {
          let count = min(body.count - sent, Int.random(in: 1...largest, using: &random))
          window.append(Array(body[sent..<sent + count]))
          sent += count
        }
        idle = 0
      case 4..<6:
        // The writer keeps the rest of a chunk until it has more bytes or the end.
        guard !isStored, let batch = window.nextBatch() else { continue }
        stored += batch.bytes
        isStored = batch.isLast
        window.notePersisted(Int64(isStored ? stored.count : stored.count / 4_096 * 4_096))
        idle = 0
      case 6 where Int.random(in: 0..<200, using: &random) == 0:
        window.stopStoring()
      case 7 where readers.count < 6 && window.start == 0:
        addReader()
      default:
        let index = Int.random(in: readers.indices, using: &random)
        switch window.step(readers[index].id) {
        case .bytes(let bytes):
          if bytes.isEmpty { Issue.record("an empty chunk") }
          readers[index].bytes += bytes
        case .stored(let range):
          if range.upperBound > window.persisted { Issue.record("the store does not have these bytes") }
          readers[index].bytes += stored[Int(range.lowerBound)..<Int(range.upperBound)]
          window.advance(readers[index].id, to: range.upperBound)
        case .wait: continue
        case .end:
          if readers[index].isDone { continue }
          readers[index].isDone = true
          window.removeReader(readers[index].id)
        case .failure: Issue.record("no failure was injected")
        case .cutOff: Issue.record("no time has passed")
        }
        idle = 0
      }
    }
    if isStored, stored != body { Issue.record("the store has another body") }
    for reader in readers {
      let expected = reader.range.map { Array(body[Int($0.lowerBound)..<Int($0.upperBound)]) } ?? body
      if reader.bytes != expected { Issue.record("a reader got another body") }
    }
  }
}

extension BodyWindow {
  /// A Boolean value that indicates whether the producer may append more bytes, without any time passing.
  fileprivate mutating func hasRoom() -> Bool { makeRoom(at: .zero) == .free }
}
#endif

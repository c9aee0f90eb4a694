import Larder
import Testing

@testable import LarderExpiry

@Suite struct PendingRenewalsTests {
  private var state = PendingRenewals()

  private func time(_ seconds: Int64) -> WallTime { WallTime(microseconds: seconds * 1_000_000) }

  /// A sliding deadline with a window of 100 seconds.
  private func deadline(_ seconds: Int64) -> ExpiryDeadline {
    ExpiryDeadline(time: time(seconds), windowMicroseconds: 100_000_000)
  }

  private mutating func note(
    _ key: StoreKey, _ found: ExpiryDeadline, seen: Renewal? = nil, at seconds: Int64
  ) -> Bool {
    state.note(key, found, seen, at: time(seconds), for: nil)
  }

  private mutating func finish(_ batch: [Renewal], _ error: (any Error)? = nil, at seconds: Int64) -> Bool {
    state.finish(batch, writing: error == nil ? batch.count : 0, error: error, at: time(seconds))
  }

  private let full = StoreError(.full, during: .update, message: "full")

  @Test mutating func `many reads of a key cause one write`() {
    #expect(note("k", deadline(100), at: 50))
    for _ in 0..<100 { #expect(!note("k", deadline(100), at: 50)) }
    #expect(!note("l", deadline(100), at: 51))
    let batch = state.nextBatch(at: time(52))
    #expect(batch.map(\.key) == ["k", "l"])
    #expect(batch.map(\.stored) == [deadline(100), deadline(100)])
    #expect(batch.map(\.renewed) == [deadline(150), deadline(151)])
    #expect(!note("k", deadline(100), at: 55))
    #expect(!finish(batch, at: 56))
    #expect(state.renewals.isEmpty)
    #expect(state.nextBatch(at: time(57)).isEmpty)
    #expect(state.statistics.writtenRenewalCount == 2)
  }

  /// A read that found the deadline of before a renewal, and is noted when that renewal is in the base, renews the new one.
  @Test(arguments: [false, true]) mutating func `a read during the write of a renewal is not lost`(isReadAgain: Bool) {
    #expect(note("k", deadline(100), at: 50))
    let batch = state.nextBatch(at: time(50))
    let seen = state.renewals["k"]
    if isReadAgain { _ = note("k", deadline(100), at: 80) }
    _ = finish(batch, at: 110)
    _ = note("k", deadline(100), seen: seen, at: 110)
    let next = state.nextBatch(at: time(111))
    #expect(next.map(\.stored) == [deadline(150)])
    #expect(next.map(\.renewed) == [deadline(210)])
  }

  @Test mutating func `renewals that are not due are ignored`() {
    #expect(!note("k", deadline(100), at: 9))
    #expect(!note("k", deadline(100), at: 100))
    #expect(!note("k", ExpiryDeadline(time: time(100), windowMicroseconds: nil), at: 50))
    #expect(state.renewals.isEmpty)
  }

  @Test mutating func `a renewal during the update is written by the next one`() {
    _ = note("k", deadline(100), at: 50)
    let first = state.nextBatch(at: time(50))
    // Noted before and after the instant at which the update takes effect.
    #expect(note("k", deadline(100), at: 70))
    #expect(!note("k", deadline(150), at: 90))
    #expect(state.renewals["k"]?.deadline(inPlaceOf: deadline(100)) == deadline(190))
    #expect(state.renewals["k"]?.deadline(inPlaceOf: deadline(150)) == deadline(190))
    #expect(state.renewals["k"]?.deadline(inPlaceOf: deadline(151)) == deadline(151))
    #expect(!finish(first, at: 91))
    let second = state.nextBatch(at: time(92))
    #expect(second.map(\.stored) == [deadline(150)])
    #expect(second.map(\.renewed) == [deadline(190)])
    #expect(!finish(second, at: 93))
    #expect(state.renewals.isEmpty)
  }

  @Test mutating func `after a failure renewals count and wait for a second`() {
    _ = note("k", deadline(100), at: 50)
    _ = note("l", deadline(100), at: 50)
    let batch = state.nextBatch(at: time(50))
    #expect(!finish(batch, full, at: 51))
    #expect(state.renewals["k"]?.deadline(inPlaceOf: deadline(100)) == deadline(150))
    #expect(state.statistics.failureCount == 1)
    #expect((state.statistics.lastError as? StoreError)?.code == .full)
    #expect(!note("m", deadline(100), at: 51))
    #expect(note("m", deadline(100), at: 52))
    #expect(state.nextBatch(at: time(52)).map(\.key) == ["k", "l", "m"])
  }

  @Test mutating func `setting the clock back ends the pause`() {
    _ = note("k", deadline(100), at: 50)
    _ = finish(state.nextBatch(at: time(50)), full, at: 50)
    #expect(note("l", deadline(60), at: 20))
  }

  @Test mutating func `an entry at fault fails no other`() {
    for key in ["a", "b", "c"] as [StoreKey] { _ = note(key, deadline(100), at: 50) }
    let damage = StoreError(.corrupted, during: .update, key: "b", message: "damaged")
    #expect(finish(state.nextBatch(at: time(50)), damage, at: 50))
    #expect(state.statistics.droppedRenewalCount == 1)
    #expect(state.nextBatch(at: time(50)).map(\.key) == ["a", "c"])
  }

  @Test(arguments: [.valueTooLarge, .invalidKey, .unsupported, .keyUnavailable, StoreError.Code(rawValue: "custom")])
  mutating func `an error that names an entry blames it whatever its code`(_ code: StoreError.Code) {
    for key in ["a", "b", "c"] as [StoreKey] { _ = note(key, deadline(100), at: 50) }
    let batch = state.nextBatch(at: time(50))
    let error = StoreError(code, during: .update, key: "b", message: "refused", isRetryable: code == .keyUnavailable)
    #expect(finish(batch, error, at: 50))
    #expect(state.statistics.droppedRenewalCount == 1)
    #expect(state.nextBatch(at: time(50)).map(\.key) == ["a", "c"])
  }

  @Test mutating func `errors of the store blame no entry`() {
    let errors = [
      StoreError(.full, during: .update, key: "k", message: "full"),
      StoreError(.corrupted, during: .update, key: "k", message: "unclear", outcome: .unknown),
      StoreError(.unsupported, during: .update, key: "k", message: "not yet", isRetryable: true),
      StoreError(.corrupted, during: .update, key: "other", message: "damaged"),
      StoreError(.corrupted, during: .update, message: "damaged"),
    ]
    for (index, error) in errors.enumerated() {
      let seconds = 50 + Int64(index) * 2
      #expect(note("k", deadline(100), at: seconds))
      #expect(!finish(state.nextBatch(at: time(seconds)), error, at: seconds))
      #expect(!state.isStalled(at: time(seconds)))
      #expect(state.isStalled(at: time(seconds + 1)))
    }
    #expect(state.renewals["k"] != nil)
    #expect(state.statistics.droppedRenewalCount == 0)
  }

  @Test mutating func `a failed batch is retried after the others`() {
    let count = PendingRenewals.batchSize
    for number in 0..<(count + 1) { _ = note(StoreKey(integer: number), deadline(100), at: 50) }
    #expect(!finish(state.nextBatch(at: time(50)), full, at: 50))
    let second = state.nextBatch(at: time(51))
    #expect(second.map(\.key) == ([count] + (0..<(count - 1))).map { StoreKey(integer: $0) })
  }

  @Test mutating func `a rewritten entry has its own renewal`() {
    _ = note("k", deadline(100), at: 50)
    let first = state.nextBatch(at: time(50))
    #expect(note("k", deadline(200), at: 120))
    #expect(state.renewals["k"]?.deadline(inPlaceOf: deadline(100)) == deadline(100))
    #expect(!finish(first, full, at: 120))
    let second = state.nextBatch(at: time(121))
    #expect(second.map(\.stored) == [deadline(200)])
    #expect(second.map(\.renewed) == [deadline(220)])
    // A renewal that was replaced before it was taken is written once.
    #expect(!finish(second, at: 122))
    #expect(note("k", deadline(300), at: 250))
    #expect(!note("k", deadline(301), at: 250))
    #expect(state.nextBatch(at: time(250)).map(\.stored) == [deadline(301)])
  }

  @Test mutating func `batches and their total are bounded`() {
    for number in 0..<PendingRenewals.limit { _ = note(StoreKey(integer: number), deadline(100), at: 50) }
    #expect(!note("more", deadline(100), at: 50))
    #expect(state.renewals.count == PendingRenewals.limit)
    #expect(state.statistics.droppedRenewalCount == 1)
    let batch = state.nextBatch(at: time(50))
    #expect(batch.count == PendingRenewals.batchSize)
    #expect(batch.first?.key == StoreKey(integer: 0))
    #expect(finish(batch, at: 50))
    _ = note("more", deadline(100), at: 50)
    #expect(state.renewals["more"] != nil)
  }

  @Test mutating func `renewals that expire before they are written are dropped`() {
    _ = note("k", deadline(100), at: 50)
    _ = note("l", deadline(100), at: 60)
    #expect(state.nextBatch(at: time(150)).map(\.key) == ["l"])
    #expect(state.statistics.droppedRenewalCount == 1)
    #expect(state.renewals["k"] == nil)
  }
}

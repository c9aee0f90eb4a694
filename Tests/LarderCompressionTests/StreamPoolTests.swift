import Larder
#if Compression
import Testing

@testable import LarderCompression

@Suite struct StreamPoolTests {
  /// A stream that records its creation and its uses.
  private struct NumberedStream: ~Copyable, Sendable {
    let number: Int
    var useCount = 0
  }

  private final class Workshop: Sendable {
    let madeCount = Locked(0)

    func pool(count: Int) -> StreamPool<NumberedStream> {
      StreamPool(count: count) { () throws(ZlibError) in
        let number = self.madeCount.withLock { count in
          count += 1
          return count
        }
        guard number < 100 else { throw ZlibError(code: -4) }
        return NumberedStream(number: number)
      }
    }
  }

  @Test func `a stream is reused`() throws {
    let workshop = Workshop()
    let pool = workshop.pool(count: 2)
    for use in 1...5 {
      let seen = try pool.withStream { stream in
        stream.useCount += 1
        return (stream.number, stream.useCount)
      }
      #expect(seen == (1, use))
    }
    #expect(workshop.madeCount.withLock { $0 } == 1)
  }

  @Test func `a new stream is created if all are in use`() throws {
    let workshop = Workshop()
    let pool = workshop.pool(count: 2)
    func nested(_ depth: Int) throws -> [Int] {
      var numbers: [Int] = []
      var failure: (any Error)?
      try pool.withStream { stream in
        numbers = [stream.number]
        do {
          if depth > 1 { numbers += try nested(depth - 1) }
        } catch {
          failure = error
        }
      }
      if let failure { throw failure }
      return numbers
    }
    #expect(try nested(4) == [1, 2, 3, 4])
    // The pool keeps the first two.
    #expect(try nested(3) == [1, 2, 5])
  }

  @Test func `an error leaves the stream in the pool`() throws {
    let workshop = Workshop()
    let pool = workshop.pool(count: 1)
    #expect(throws: ZlibError.damaged) {
      try pool.withStream { (stream) throws(ZlibError) in
        stream.useCount += 1
        throw .damaged
      }
    }
    #expect(try pool.withStream { $0.useCount } == 1)
    workshop.madeCount.withLock { $0 = 1000 }
    #expect(throws: ZlibError(code: -4)) { try workshop.pool(count: 1).withStream { $0.number } }
    #expect(throws: ZlibError(code: -4)) { try workshop.pool(count: 0).withStream { $0.number } }
  }
}
#endif

import FlyingSocks

/// A body that fails before its first byte.
///
/// The answer has begun by then, so the server can only cut the connection.
struct CutBody: AsyncBufferedSequence {
  struct Cut: Error {}

  struct AsyncIterator: AsyncBufferedIteratorProtocol {
    mutating func next() async throws -> UInt8? { throw Cut() }

    mutating func nextBuffer(suggested count: Int) async throws -> [UInt8]? { throw Cut() }
  }

  func makeAsyncIterator() -> AsyncIterator { AsyncIterator() }
}

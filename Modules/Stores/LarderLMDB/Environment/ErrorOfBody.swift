#if LMDB
/// What the closure of a caller threw: nothing that LMDB said, whatever its type.
struct ErrorOfBody: Error {
  let error: any Error

  /// Runs a closure of a caller.
  ///
  /// - Throws: `ErrorOfBody`.
  static func wrapping<Result: ~Copyable>(_ body: () throws -> Result) throws(ErrorOfBody) -> Result {
    do {
      return try body()
    } catch {
      throw ErrorOfBody(error: error)
    }
  }
}
#endif

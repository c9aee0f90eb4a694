/// An error that a caller's closure threw inside an operation of a store, such as the body of an update.
///
/// The wrapper keeps the error apart from those of the store, whatever its type, so that it reaches the caller unchanged.
package struct BodyError: Error {
  /// The error.
  package let error: any Error

  /// Runs a caller's closure and wraps its error.
  ///
  /// - Parameter body: The closure.
  /// - Returns: The result of `body`.
  /// - Throws: ``BodyError``.
  package static func wrapping<Result: ~Copyable>(_ body: () throws -> Result) throws(BodyError) -> Result {
    do {
      return try body()
    } catch {
      throw BodyError(error: error)
    }
  }
}

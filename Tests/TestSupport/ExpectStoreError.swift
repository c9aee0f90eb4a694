package import Larder
package import Testing

/// Expects that a closure throws a ``StoreError`` with a code.
///
/// - Returns: The error, for further expectations.
@discardableResult
package func expectStoreError<Result>(
  _ code: StoreError.Code, sourceLocation: SourceLocation = #_sourceLocation, _ body: () throws -> Result
) -> StoreError? {
  let error = #expect(throws: StoreError.self, sourceLocation: sourceLocation) { _ = try body() }
  #expect(error?.code == code, sourceLocation: sourceLocation)
  return error
}

/// Expects that an asynchronous closure throws a ``StoreError`` with a code.
///
/// - Returns: The error, for further expectations.
@discardableResult
package func expectStoreError<Result>(
  _ code: StoreError.Code, sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Result
) async -> StoreError? {
  let error = await #expect(throws: StoreError.self, sourceLocation: sourceLocation) { _ = try await body() }
  #expect(error?.code == code, sourceLocation: sourceLocation)
  return error
}

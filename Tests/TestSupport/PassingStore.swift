public import Larder

/// A decorator for tests, which passes on all that it does not implement itself.
public protocol PassingStore<Base>: ForwardingStore {}

extension PassingStore {
  /// Calls the base.
  public func forward<Result>(
    _ operation: StoreOperation, of key: StoreKey?, _ body: () async throws -> Result
  ) async throws -> Result {
    try await body()
  }
}

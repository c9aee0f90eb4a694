import Larder

/// Opens a store again that was dropped without closing it.
///
/// A task of it, or its executor, may hold it for a moment longer than the last reference of the caller; as long as that
/// makes the opening `locked`, it is tried again.
///
/// - Parameters:
///   - patience: For how long; 5 seconds unless said.
///   - open: Opens it.
/// - Throws: What `open` throws.
func openAgain<Store>(
  patience: Duration = .seconds(5), _ open: () async throws -> Store
) async throws -> Store {
  let end = ContinuousClock.now + patience
  while true {
    do {
      return try await open()
    } catch let error as StoreError where error.code == .locked && ContinuousClock.now < end {
      await Task.yield()
    }
  }
}

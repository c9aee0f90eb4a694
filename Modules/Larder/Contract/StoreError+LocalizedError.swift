public import Foundation

extension StoreError: LocalizedError {
  /// The ``description``, for `localizedDescription`.
  public var errorDescription: String? { description }
}

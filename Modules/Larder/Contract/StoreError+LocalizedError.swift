#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension StoreError: LocalizedError {
  /// The ``description``, for `localizedDescription`.
  public var errorDescription: String? { description }
}

public import Larder

extension StoreError.Code {
  /// A receipt is not that of a lease which goes on: it has ended, or the item was replaced or has gone.
  public static let staleReceipt = StoreError.Code(rawValue: "staleReceipt")
}

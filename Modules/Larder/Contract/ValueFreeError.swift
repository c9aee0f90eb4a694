/// An error whose text never holds a key or a value of a store, so that ``StoreError/description`` may show it.
///
/// Of any other underlying error it shows only the type.
public protocol ValueFreeError: Error {}

extension StoreError: ValueFreeError {}
extension JSONSyntaxError: ValueFreeError {}
extension CancellationError: ValueFreeError {}

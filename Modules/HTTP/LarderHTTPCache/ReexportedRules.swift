#if HTTPCache
// These types of the rules are a part of this module's interface, so a program needs no further import for them.
@_exported public import struct HTTPCachingRules.CacheStatus
@_exported public import enum HTTPCachingRules.HTTPCacheMode
@_exported public import enum HTTPCachingRules.HTTPCachePolicy
@_exported public import struct HTTPCachingRules.SelectingFields
@_exported public import enum HTTPCachingRules.SetCookieStoring
#endif

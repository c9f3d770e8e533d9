package letter

// SQLPlainStyles has the server write and read values in forms that lose nothing and
// that any session reads alike: in the style SQL a daterange may swap month and day, an
// interval its signs, and with few digits a float is another one. The session's own
// forms are kept until [SQLOwnStyles].
const SQLPlainStyles = `-- deadletter.plain_styles
select
  set_config('leasereaper.datestyle', current_setting('datestyle'), true),
  set_config('leasereaper.intervalstyle', current_setting('intervalstyle'), true),
  set_config('leasereaper.extra_float_digits', current_setting('extra_float_digits'), true),
  set_config('datestyle', 'ISO', true),
  set_config('intervalstyle', 'postgres', true),
  set_config('extra_float_digits', '1', true)`

// SQLOwnStyles returns to the session's own forms.
const SQLOwnStyles = `-- deadletter.own_styles
select
  set_config('datestyle', current_setting('leasereaper.datestyle'), true),
  set_config('intervalstyle', current_setting('leasereaper.intervalstyle'), true),
  set_config('extra_float_digits', current_setting('leasereaper.extra_float_digits'), true)`

// SQLIsPlain is an expression: whether the session's own forms do.
const SQLIsPlain = `(current_setting('datestyle') like 'ISO,%' and current_setting('intervalstyle') = 'postgres'
    and current_setting('extra_float_digits')::int > 0)`


function __pgstrata_cases
    set -l folder (string match -r '^[^:]+(?=:)' -- (commandline -ct))
    for trials in $folder/trials/*/
        echo $folder:(basename $trials)
    end
end
complete -c pgstrata -n "__fish_pgstrata_using_subcommand shelf; and __fish_seen_subcommand_from show" -f -a "@NAMES@"
complete -c pgstrata -n "__fish_pgstrata_using_subcommand compare" -a "@SIDES@ (__pgstrata_cases)"
complete -c pgstrata -n "__fish_pgstrata_using_subcommand plan run cut submit" -a "@PLANS@"
